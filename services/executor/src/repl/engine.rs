//! The interpreter, with no way out but a few functions that ask its host.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    io,
    rc::Rc,
};

use rquickjs::{
    CatchResultExt as _, Context, Ctx, Function, Object, Persistent, Promise, Runtime, Value, function::Opt,
    promise::PromiseState,
};

use super::{
    budget::Budget,
    message::{FromEngine, Limits, Stream},
};

/// Stack of the interpreter; that of its thread is larger.
const STACK: usize = 512 << 10;
/// Calls to the host that may be open at the same time.
const OPEN_CALLS: usize = 1000;
/// Output of one evaluation that is passed on.
const OUTPUT: usize = 1 << 20;

/// Takes what the interpreter says.
pub(super) type Say = Box<dyn Fn(&FromEngine, &[u8]) -> io::Result<()>>;

type Settle = (Persistent<Function<'static>>, Persistent<Function<'static>>);

/// What functions of the interpreter share with its loop.
struct Host {
    say: Say,
    budget: Budget,
    calls: RefCell<HashMap<u64, Settle>>,
    last_call: Cell<u64>,
    printed: Cell<usize>,
    answer: RefCell<Option<String>>,
    /// Why nobody hears it any more.
    broken: RefCell<Option<io::Error>>,
}

impl Host {
    fn tell(&self, message: &FromEngine, attachment: &[u8]) {
        if let Err(error) = (self.say)(message, attachment) {
            self.broken.borrow_mut().get_or_insert(error);
        }
    }

    fn print(&self, stream: &str, text: &str) {
        let left = OUTPUT - self.printed.get();
        let shown = &text[..text.floor_char_boundary(left)];
        self.printed.set(self.printed.get() + shown.len());
        let stream = if stream == "err" { Stream::Err } else { Stream::Out };
        if !shown.is_empty() {
            self.tell(&FromEngine::Print(stream), shown.as_bytes());
        }
    }
}

/// How an evaluation stands.
pub(super) enum State {
    /// It does nothing until a call is answered.
    Waits,
    Done {
        error: Option<String>,
        answer: Option<String>,
    },
}

/// An interpreter. What its code puts on `scope` stays.
pub(super) struct Engine {
    runtime: Runtime,
    context: Context,
    host: Rc<Host>,
    limits: Limits,
    helpers: Persistent<Object<'static>>,
    running: Option<Persistent<Promise<'static>>>,
}

impl Engine {
    /// A new one, whose variable `context` has this value.
    pub(super) fn new(limits: Limits, variable: &str, say: Say) -> Result<Self, rquickjs::Error> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(limits.memory);
        runtime.set_max_stack_size(STACK);
        let context = Context::full(&runtime)?;
        let host = Rc::new(Host {
            say,
            budget: Budget::default(),
            calls: RefCell::default(),
            last_call: Cell::default(),
            printed: Cell::default(),
            answer: RefCell::default(),
            broken: RefCell::default(),
        });
        host.budget.begin(&limits);
        let ticks = Rc::clone(&host);
        runtime.set_interrupt_handler(Some(Box::new(move || ticks.budget.tick())));
        let helpers = context.with(|ctx| {
            ctx.globals().set("context", variable)?;
            let prelude: Function<'_> = ctx.eval(include_str!("prelude.js"))?;
            let helpers: Object<'_> = prelude.call((natives(&ctx, &host)?,))?;
            Ok::<_, rquickjs::Error>(Persistent::save(&ctx, helpers))
        })?;
        Ok(Self { runtime, context, host, limits, helpers, running: None })
    }

    /// Begins to run code, as the body of an asynchronous function.
    pub(super) fn start(&mut self, code: &str) -> Result<(), String> {
        self.host.printed.set(0);
        self.host.answer.take();
        self.host.calls.borrow_mut().clear();
        self.host.budget.begin(&self.limits);
        let started = self.context.with(|ctx| {
            let helpers = self.helpers.clone().restore(&ctx).map_err(|error| error.to_string())?;
            let start: Function<'_> = helpers.get("start").map_err(|error| error.to_string())?;
            match start.call::<_, Promise<'_>>((code,)).catch(&ctx) {
                Ok(promise) => Ok(Persistent::save(&ctx, promise)),
                Err(error) => Err(describe(&ctx, &helpers, error)),
            }
        });
        self.running = Some(started.map_err(|error| self.instead(error))?);
        Ok(())
    }

    /// Works until the evaluation has ended or waits. `None` if there is none.
    pub(super) fn work(&mut self) -> Option<State> {
        self.running.as_ref()?;
        self.host.budget.resume();
        let state = self.advance();
        self.host.budget.pause();
        if matches!(state, State::Done { .. }) {
            self.running = None;
            self.host.calls.borrow_mut().clear();
        }
        Some(state)
    }

    fn advance(&self) -> State {
        loop {
            if let Some(spent) = self.host.budget.spent() {
                return self.failed(spent.to_string());
            }
            if let Some(error) = self.settled() {
                return match error {
                    Some(error) => self.failed(error),
                    None => State::Done { error: None, answer: self.host.answer.take() },
                };
            }
            if self.runtime.is_job_pending() {
                // What a job throws is the matter of its promise.
                let _ = self.runtime.execute_pending_job();
            } else if self.host.calls.borrow().is_empty() {
                return self.failed("the code waits for something that will never happen".to_owned());
            } else {
                return State::Waits;
            }
        }
    }

    /// Hands in what a call came to.
    pub(super) fn settle(&self, call: u64, outcome: Result<&str, &str>) {
        let Some((resolve, reject)) = self.host.calls.borrow_mut().remove(&call) else { return };
        self.host.budget.resume();
        // What cannot be handed in for want of memory stays open, and its evaluation says so.
        let _ = self.context.with(|ctx| {
            let helpers = self.helpers.clone().restore(&ctx)?;
            match outcome {
                Ok(json) => {
                    let parse: Function<'_> = helpers.get("parse")?;
                    let value: Value<'_> = parse.call((json,))?;
                    resolve.restore(&ctx)?.call::<_, ()>((value,))
                }
                Err(why) => {
                    let refuse: Function<'_> = helpers.get("refuse")?;
                    refuse.call::<_, ()>((reject.restore(&ctx)?, why))
                }
            }
        });
        self.host.budget.pause();
    }

    /// Why nobody hears it any more, if that is so.
    pub(super) fn broken(&self) -> Option<io::Error> {
        self.host.broken.borrow_mut().take()
    }

    /// `Some` once the code has ended, with what it threw.
    fn settled(&self) -> Option<Option<String>> {
        let promise = self.running.clone()?;
        self.context.with(|ctx| {
            let Ok(promise) = promise.restore(&ctx) else { return Some(Some("it was lost".to_owned())) };
            match promise.state() {
                PromiseState::Pending => None,
                PromiseState::Resolved => Some(None),
                PromiseState::Rejected => {
                    let thrown = promise.result::<Value<'_>>()?.catch(&ctx).err()?;
                    let helpers = self.helpers.clone().restore(&ctx).ok()?;
                    Some(Some(describe(&ctx, &helpers, thrown)))
                }
            }
        })
    }

    /// An evaluation that failed has given no answer.
    fn failed(&self, error: String) -> State {
        self.host.answer.take();
        State::Done { error: Some(self.instead(error)), answer: None }
    }

    /// What used up a budget is the reason for whatever it looks like.
    fn instead(&self, error: String) -> String {
        self.host.budget.spent().map_or(error, |spent| spent.to_string())
    }
}

fn describe<'js>(ctx: &Ctx<'js>, helpers: &Object<'js>, error: rquickjs::CaughtError<'js>) -> String {
    let unknown = || "an error that cannot be shown".to_owned();
    let thrown = match error {
        rquickjs::CaughtError::Error(error) => return error.to_string(),
        rquickjs::CaughtError::Exception(exception) => exception.into_value(),
        rquickjs::CaughtError::Value(value) => value,
    };
    let described = || helpers.get::<_, Function<'js>>("describe")?.call::<_, String>((thrown,));
    described().catch(ctx).unwrap_or_else(|_| unknown())
}

/// The functions by which the interpreter asks its host.
fn natives<'js>(ctx: &Ctx<'js>, host: &Rc<Host>) -> rquickjs::Result<Object<'js>> {
    let natives = Object::new(ctx.clone())?;
    let own = Rc::clone(host);
    let print = move |stream: String, text: String| own.print(&stream, &text);
    natives.set("print", Function::new(ctx.clone(), print)?)?;
    let own = Rc::clone(host);
    let answer = move |text: String| drop(own.answer.replace(Some(text)));
    natives.set("final", Function::new(ctx.clone(), answer)?)?;
    let own = Rc::clone(host);
    let call = move |ctx: Ctx<'js>, operation: String, arguments: String, context: Opt<Option<String>>| {
        ask(&own, &ctx, operation, arguments, context.0.flatten())
    };
    natives.set("call", Function::new(ctx.clone(), call)?)?;
    Ok(natives)
}

fn ask<'js>(
    host: &Host,
    ctx: &Ctx<'js>,
    operation: String,
    arguments: String,
    context: Option<String>,
) -> rquickjs::Result<Promise<'js>> {
    let (promise, resolve, reject) = ctx.promise()?;
    if host.calls.borrow().len() >= OPEN_CALLS {
        let text = format!("more than {OPEN_CALLS} calls are open: wait for some of them first");
        reject.call::<_, ()>((rquickjs::Exception::from_message(ctx.clone(), &text)?,))?;
        return Ok(promise);
    }
    let id = host.last_call.get() + 1;
    host.last_call.set(id);
    let settle = (Persistent::save(ctx, resolve), Persistent::save(ctx, reject));
    host.calls.borrow_mut().insert(id, settle);
    let has_context = context.is_some();
    let call = FromEngine::Call { id, operation, arguments, has_context };
    host.tell(&call, context.unwrap_or_default().as_bytes());
    Ok(promise)
}
