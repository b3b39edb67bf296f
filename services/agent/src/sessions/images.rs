//! Images that were sent ahead, to be named in messages. Each is kept as a log without events, with one blob.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{Part, Role};
use prost::Message as _;
use store::{BlobId, Kind};
use wire::session::{Image, ImageFilePart, Message, content_part::Part as Piece};

use super::{Error, Sessions, ids, words};

impl Sessions {
    pub(crate) async fn keep_image(
        &self,
        account: &str,
        image: Image,
        bytes: Vec<u8>,
    ) -> Result<Image, Error> {
        let sha256 = BlobId::of(&bytes).0.to_vec();
        let image = Image { size: bytes.len() as u64, sha256, ..image };
        let described = (image.filename.clone(), image.encode_to_vec());
        let id = self.keep(ids::new("img_"), account, Kind::Image, described, None).await?;
        self.store().put_blob(&id, bytes).await?;
        Ok(self.described_image(id.as_str(), account).await?.0)
    }

    /// An image of an account, with its bytes.
    pub(crate) async fn image(&self, id: &str, account: &str) -> Result<(Image, Vec<u8>), Error> {
        let (image, blob) = self.described_image(id, account).await?;
        let entry = self.look_up(id, account, Kind::Image).await?;
        match self.store().blob(&entry.log, blob).await? {
            Some(bytes) => Ok((image, bytes)),
            None => Err(Error::Unknown(Kind::Image, id.to_owned())),
        }
    }

    async fn described_image(&self, id: &str, account: &str) -> Result<(Image, BlobId), Error> {
        let unknown = || Error::Unknown(Kind::Image, id.to_owned());
        let entry = self.look_up(id, account, Kind::Image).await?;
        let image = Image::decode(entry.meta.details.as_slice()).map_err(|_| unknown())?;
        let blob = BlobId(image.sha256.as_slice().try_into().map_err(|_| unknown())?);
        let (id, created_at) = (id.to_owned(), Some(wire::time(entry.created)));
        Ok((Image { id, created_at, ..image }, blob))
    }

    /// Whether all images that a message names are there.
    pub(super) async fn check_images(&self, account: &str, message: &Message) -> Result<(), Error> {
        for part in &message.content {
            if let Some(Piece::ImageFile(file)) = &part.part {
                self.described_image(&file.image_id, account).await?;
            }
        }
        Ok(())
    }

    /// A message as the model hears it.
    pub(super) async fn for_model(
        &self,
        account: &str,
        message: &Message,
    ) -> Result<domain::Message, store::Error> {
        let mut parts = vec![Part::Text(words::words(message))];
        for part in &message.content {
            match &part.part {
                Some(Piece::Image(image)) => parts.push(Part::Image(words::image(image))),
                Some(Piece::ImageFile(file)) => parts.push(self.seen(account, file).await?),
                Some(Piece::Text(_) | Piece::ToolCall(_) | Piece::ToolResult(_)) | None => {}
            }
        }
        Ok(domain::Message::new(Role::User, parts))
    }

    async fn seen(&self, account: &str, file: &ImageFilePart) -> Result<Part, store::Error> {
        match self.image(&file.image_id, account).await {
            Ok((image, bytes)) => {
                let url = format!("data:{};base64,{}", image.media_type, STANDARD.encode(bytes));
                Ok(Part::Image(domain::Image { url, detail: None, format: Some(image.media_type) }))
            }
            Err(Error::Store(error)) => Err(error),
            Err(Error::Unknown(..) | Error::OtherRequest | Error::Changed) => {
                Ok(Part::Text("[an image that is no longer kept]".to_owned()))
            }
        }
    }
}
