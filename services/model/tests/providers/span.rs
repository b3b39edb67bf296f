//! The span of a call: it lasts as long as the stream and says nothing of the content.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex},
};

use harness::models::{OpenAi, Scripted};
use model::{Outgoing, Settings};
use serde_json::json;
use tracing::{
    Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{Layer, layer::Context, layer::SubscriberExt, registry::LookupSpan};

use crate::calls::{answer, ask, model, quick};

/// The fields of all spans named `chat`, and how many of them are closed.
#[derive(Clone, Default)]
struct Chats(Arc<Mutex<(BTreeMap<String, String>, usize)>>);

impl Visit for Chats {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.lock().unwrap().0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Chats {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        if attributes.metadata().name() == "chat" {
            attributes.record(&mut self.clone());
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if context.span(id).unwrap().name() == "chat" {
            values.record(&mut self.clone());
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let mut chats = self.0.lock().unwrap();
        chats.1 += usize::from(context.span(&id).unwrap().name() == "chat");
    }
}

#[tokio::test]
async fn a_call_is_a_span() {
    let chats = Chats::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(chats.clone()));
    let server = Scripted::<OpenAi>::start().await.unwrap();
    let outgoing = Outgoing::new(|headers| {
        let span = tracing::Span::current().metadata().map_or("none", |span| span.name());
        headers.insert("x-span", span.parse().unwrap());
    });
    let model = model(&server, Settings { outgoing, ..quick() });
    let counted = json!({"prompt_tokens": 100, "completion_tokens": 10});
    answer(&*model, ask(&counted)).await.unwrap();
    assert_eq!(server.requests()[0].headers["x-span"], "chat");
    let (fields, closed) = chats.0.lock().unwrap().clone();
    let fields: BTreeMap<&str, &str> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
    let expected = BTreeMap::from([
        ("otel.name", "\"chat scripted\""),
        ("otel.kind", "\"client\""),
        ("gen_ai.operation.name", "\"chat\""),
        ("gen_ai.provider.name", "\"openai\""),
        ("gen_ai.request.model", "\"scripted\""),
        ("gen_ai.usage.input_tokens", "100"),
        ("gen_ai.usage.output_tokens", "10"),
    ]);
    assert_eq!((fields, closed), (expected, 1));

    answer(&*model, ask(&json!({"status": 400}))).await.unwrap_err();
    let (fields, closed) = chats.0.lock().unwrap().clone();
    assert_eq!((fields["error.type"].as_str(), closed), ("\"rejected\"", 2));
}
