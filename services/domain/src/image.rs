//! Images that belong to a conversation, and which of them a model can be given.

/// Types of inline images that providers take. The second is what many call the first.
const TYPES: [&str; 5] = ["image/jpeg", "image/jpg", "image/png", "image/gif", "image/webp"];
const DETAILS: [&str; 3] = ["low", "high", "auto"];

/// An image, by address or inline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// An http(s) address or a `data:` URI. The provider fetches it, Sleuth never does.
    pub url: String,
    /// Resolution hint: `low`, `high` or `auto`.
    pub detail: Option<String>,
    /// MIME type, where the address does not tell.
    pub format: Option<String>,
}

/// Why no model can be given an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadImage {
    /// It is neither inline nor at a web address.
    #[error("an image is an http(s) address or a data: URI")]
    Address,
    /// The inline image is not what it must be.
    #[error("an inline image is data:TYPE;base64,DATA: {0}")]
    Inline(&'static str),
    /// Providers do not take this type.
    #[error("images of the type `{0}` are not supported; {known} are", known = TYPES.join(", "))]
    Type(String),
    /// The resolution hint means nothing.
    #[error("detail is low, high or auto")]
    Detail,
}

impl Image {
    /// Whether a model can be given it, as far as can be told without looking inside.
    ///
    /// # Errors
    /// [`BadImage`] says why not.
    pub fn check(&self) -> Result<(), BadImage> {
        let (scheme, rest) = self.url.split_once(':').ok_or(BadImage::Address)?;
        match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" if rest.len() > 2 && rest.starts_with("//") => {}
            "data" => self.check_inline(rest)?,
            _ => return Err(BadImage::Address),
        }
        if self.detail.as_deref().is_some_and(|detail| !DETAILS.contains(&detail)) {
            return Err(BadImage::Detail);
        }
        self.format.as_deref().map_or(Ok(()), check_type)
    }

    fn check_inline(&self, uri: &str) -> Result<(), BadImage> {
        let (head, data) = uri.split_once(',').ok_or(BadImage::Inline("it has no comma"))?;
        let mut parameters = head.split(';');
        let kind = parameters.next().filter(|kind| !kind.is_empty()).or(self.format.as_deref());
        check_type(kind.ok_or(BadImage::Inline("it has no type"))?)?;
        if !parameters.any(|parameter| parameter.eq_ignore_ascii_case("base64")) {
            return Err(BadImage::Inline("it is not in base64"));
        }
        if is_base64(data) { Ok(()) } else { Err(BadImage::Inline("its data is not base64")) }
    }
}

fn check_type(kind: &str) -> Result<(), BadImage> {
    let known = TYPES.iter().any(|known| known.eq_ignore_ascii_case(kind));
    if known { Ok(()) } else { Err(BadImage::Type(kind.chars().take(100).collect())) }
}

/// The padding may be missing, as many leave it out.
pub(crate) fn is_base64(data: &str) -> bool {
    let bare = data.trim_end_matches('=');
    let plain = bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    plain && !bare.is_empty() && bare.len() % 4 != 1 && data.len() - bare.len() <= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(url: &str) -> Result<(), BadImage> {
        Image { url: url.to_owned(), ..Image::default() }.check()
    }

    #[test]
    fn addresses_and_inline_images_are_told_from_others() {
        for good in [
            "https://a.example/x.png",
            "HTTP://a.example",
            "data:image/png;base64,AAAA",
            "data:image/JPEG;charset=x;base64,AA==",
            "data:image/webp;base64,AAA",
        ] {
            assert_eq!(checked(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("", BadImage::Address),
            ("picture.png", BadImage::Address),
            ("file:///etc/passwd", BadImage::Address),
            ("https://", BadImage::Address),
            ("https:x", BadImage::Address),
            ("data:image/png;base64", BadImage::Inline("it has no comma")),
            ("data:;base64,AAAA", BadImage::Inline("it has no type")),
            ("data:image/png,%89PNG", BadImage::Inline("it is not in base64")),
            ("data:image/png;base64,", BadImage::Inline("its data is not base64")),
            ("data:image/png;base64,AAAAA", BadImage::Inline("its data is not base64")),
            ("data:image/png;base64,AA AA", BadImage::Inline("its data is not base64")),
            ("data:image/png;base64,A===", BadImage::Inline("its data is not base64")),
            ("data:image/svg+xml;base64,AAAA", BadImage::Type("image/svg+xml".to_owned())),
            ("data:text/html;base64,AAAA", BadImage::Type("text/html".to_owned())),
        ] {
            assert_eq!(checked(bad), Err(why), "{bad}");
        }
    }

    #[test]
    fn detail_and_format_are_checked() {
        let image = |detail: Option<&str>, format: Option<&str>| Image {
            url: "https://a.example".to_owned(),
            detail: detail.map(str::to_owned),
            format: format.map(str::to_owned),
        };
        assert_eq!(image(Some("auto"), Some("image/png")).check(), Ok(()));
        assert_eq!(image(Some("sharp"), None).check(), Err(BadImage::Detail));
        assert_eq!(image(None, Some("png")).check(), Err(BadImage::Type("png".to_owned())));
        let typed = Image { url: "data:;base64,AAAA".to_owned(), ..image(None, Some("image/gif")) };
        assert_eq!(typed.check(), Ok(()));
    }
}
