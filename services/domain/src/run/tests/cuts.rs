//! A run that is cut anywhere, and that another process goes on with from the log, ends as it would have.

use super::*;

/// A world that says the same to the same question, whoever asks.
struct World<'a> {
    dice: &'a [u8],
}

impl World<'_> {
    /// What becomes of an effect depends on what it is, and on nothing that a cut alters.
    fn dice(&self, run: &Run, effect: &Effect) -> u8 {
        let key = match effect {
            Effect::CallModel { .. } | Effect::Summarize { .. } => run.messages().len(),
            Effect::RunTool { call, .. } => call.arguments.len(),
            Effect::AwaitClient { call, .. } => call.as_str().bytes().map(usize::from).sum(),
            _ => 0,
        };
        let dice = self.dice[key % self.dice.len()];
        // A call that is lost is repeated by itself, which a cut does as well.
        if dice.is_multiple_of(13) { dice.saturating_add(1) } else { dice }
    }

    /// One thing happens, if there is anything to do.
    fn turn(&self, bench: &mut Bench) -> bool {
        match bench.todo.first() {
            Some(Effect::Finish) | None => false,
            Some(effect) => {
                let dice = self.dice(&bench.run, effect);
                bench.advance(0, dice);
                true
            }
        }
    }

    /// Half of one thing happens: the model says a little, a tool prints something.
    fn begin_turn(bench: &mut Bench) {
        match bench.todo.first().cloned() {
            Some(Effect::CallModel { message, .. } | Effect::Summarize { message }) => {
                bench.give(Input::TextDelta { message, text: "I am abou".into() });
            }
            Some(Effect::RunTool { call, .. }) => {
                let (stream, text) = (OutputStream::Stdout, "o".into());
                bench.give(Input::ToolOutput { call: call.id, stream, text });
            }
            _ => {}
        }
    }

    /// What can be told of a run that goes on to its end.
    fn end(&self, bench: &mut Bench) -> (Option<Outcome>, Vec<Message>, Option<EventKind>) {
        let mut turns = 0;
        while self.turn(bench) {
            turns += 1;
            assert!(turns < 1000, "it does not end: {:?}", bench.todo);
        }
        (bench.run.outcome(), bench.run.messages().to_vec(), bench.log.last().cloned())
    }
}

fn bench(kind: u8, limits: Limits, structured: bool, window: u64) -> Bench {
    match kind {
        0 => Bench::resuming(limits),
        1 => Bench::waiting(limits),
        _ => Bench::asking(limits, structured, window),
    }
}

proptest! {
    #[test]
    fn any_cut_of_the_log_continues_to_the_same_end(
        limits in limits(), kind in 0..3_u8, structured: bool, window in 150..1500_u64,
        dice in prop::collection::vec(any::<u8>(), 1..12), cuts in prop::collection::vec(any::<usize>(), 1..4),
    ) {
        let world = World { dice: &dice };
        let undisturbed = world.end(&mut bench(kind, limits, structured, window));
        let mut cut = bench(kind, limits, structured, window);
        for turns in cuts {
            for _ in 0..turns % 8 {
                world.turn(&mut cut);
            }
            if cut.run.outcome().is_none() {
                if turns % 16 < 8 {
                    World::begin_turn(&mut cut);
                }
                cut.take_over();
            }
        }
        prop_assert_eq!(world.end(&mut cut), undisturbed);
    }
}
