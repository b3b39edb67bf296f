//! A model that says the same to the same conversation, and takes its time.

use std::{sync::Arc, time::Duration};

use domain::{CallId, Exchange, Message, Role, ToolCall, Usage};
use futures_util::{
    FutureExt as _, StreamExt as _,
    future::BoxFuture,
    stream::{self},
};
use model::{Delta, Deltas, Error, Info, Model, Reply, Request};
use tokio::time::sleep;

use super::hands::TOOLS;

/// Time from one word to the next.
const WORD: Duration = Duration::from_millis(300);

pub(super) struct Oracle {
    info: Info,
    dice: Vec<u8>,
}

impl Oracle {
    /// What it does in each turn is for the dice to say.
    pub(super) fn new(dice: &[u8]) -> Arc<Self> {
        let info = Info {
            name: "oracle".to_owned(),
            provider: "builtin".to_owned(),
            id: "oracle".to_owned(),
            context_window: 200_000,
            max_output_tokens: 1000,
            sees_images: None,
        };
        Arc::new(Self { info, dice: dice.to_vec() })
    }

    /// How long it thinks, and what it says then.
    fn reply(&self, asked: &Request) -> (Duration, Reply) {
        let turn = asked.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let dice = self.dice.get(turn).copied().filter(|_| !asked.tools.is_empty());
        let tool_calls: Vec<_> = match dice {
            Some(dice) => (0..=dice % 3).map(|number| call(turn, dice, number)).collect(),
            None => Vec::new(),
        };
        let text = format!("Round {turn}: I ask for {} things.", tool_calls.len());
        let finish_reason = if tool_calls.is_empty() { "stop" } else { "tool_calls" }.to_owned();
        let message = Message { tool_calls, ..Message::text(Role::Assistant, text) };
        let thinks = Duration::from_millis(u64::from(dice.unwrap_or_default()) * 100);
        (thinks, Reply { message, usage: Usage::default(), finish_reason, exchange: Exchange::default() })
    }
}

fn call(turn: usize, dice: u8, number: u8) -> ToolCall {
    let tool = usize::from(dice / 3 + number) % TOOLS.len();
    let seconds = dice / 2 + 20 * number;
    ToolCall {
        id: CallId::new(format!("call_{turn}_{number}")),
        name: TOOLS[tool].to_owned(),
        arguments: format!("{{\"round\":{turn},\"number\":{number},\"seconds\":{seconds}}}"),
    }
}

impl Model for Oracle {
    fn info(&self) -> &Info {
        &self.info
    }

    fn call(&self, request: Request) -> BoxFuture<'_, Result<Deltas, Error>> {
        let (thinks, reply) = self.reply(&request);
        let text = reply.message.joined_text();
        let words: Vec<_> = text.split_inclusive(' ').map(|word| Delta::Text(word.to_owned())).collect();
        let deltas = stream::iter(words.into_iter().chain([Delta::Done(Box::new(reply))]));
        let deltas = deltas.then(|delta| async {
            sleep(WORD).await;
            Ok(delta)
        });
        async move {
            sleep(thinks).await;
            Ok(deltas.boxed())
        }
        .boxed()
    }
}
