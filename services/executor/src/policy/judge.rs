//! From a command to a verdict.

use super::{
    Effect, Footprint, Judgement, Policy, block,
    guard::Refusal,
    kubectl,
    objection::Objection,
    options, parse, paths,
    programs::{self, Files},
    rules::{BuiltinAllowlist, Prefix},
    script::{Piece, Script, Simple, Word},
    survey::{self, Invocation},
};

impl Policy {
    /// Judges a bash command. `suggested` are the prefixes that the model would have a person allow, `saved` those
    /// that a person has allowed. Takes milliseconds for long commands: call it where blocking is fine.
    pub(crate) fn judge(&self, command: &str, suggested: &[&str], saved: &[Prefix]) -> Judgement {
        if let Some(invented) = suggested.iter().find(|prefix| !command.contains(**prefix)) {
            let reason = format!("Invalid prefix: `{invented}` does not occur in the command.");
            return Judgement::Deny { reason };
        }
        match parse::script(command) {
            Ok(script) => self.judge_script(&script, suggested, saved),
            Err(refusal) => self.judge_other(command, &refusal),
        }
    }

    fn judge_script(&self, script: &Script, suggested: &[&str], saved: &[Prefix]) -> Judgement {
        let (mut footprint, mut open) = (Footprint::NONE, Vec::new());
        for command in script.commands() {
            let class = self.class(command);
            if let Some(reason) = self.block(&words(command), &class) {
                return Judgement::Deny { reason };
            }
            footprint.add(&command.program, effect_of(&class));
            if let Err(objection) = self.permit(command, class, saved) {
                open.push((command, objection));
            }
        }
        let Some((first, objection)) = open.first() else {
            return Judgement::Allow { script: script.to_string(), footprint };
        };
        let helps = |prefix: &str| {
            let mut savable = open.iter().filter(|(command, _)| !kubectl::chooses_its_cluster(command));
            let prefix = Prefix::new(prefix);
            prefix.is_some_and(|it| savable.any(|(command, own)| self.helps(&it, command, own.effect)))
        };
        let mut prefixes: Vec<String> = Vec::new();
        for prefix in suggested.iter().map(|it| it.trim()).filter(|prefix| helps(prefix)) {
            if !prefixes.iter().any(|own| own == prefix) {
                prefixes.push(prefix.to_owned());
            }
        }
        Judgement::Ask { reason: format!("`{}`: {}.", first.program, objection.reason), footprint, prefixes }
    }

    /// Judges what is not a script of literal commands: never allowed, nothing to save.
    fn judge_other(&self, command: &str, refusal: &Refusal) -> Judgement {
        if let Some(reason) = block::text(command) {
            return Judgement::Deny { reason };
        }
        if refusal.is_final() {
            return Judgement::Deny { reason: block::by_guard(refusal) };
        }
        let ask = |reason: String, footprint| Judgement::Ask { reason, footprint, prefixes: Vec::new() };
        match survey::survey(command) {
            Ok(survey) => {
                let mut footprint =
                    Footprint { effect: survey.effect, on_machine: survey.effect, ..Footprint::NONE };
                for invocation in &survey.invocations {
                    let class = self.class_of_invocation(invocation);
                    if let Some(reason) = self.block(&known_words(invocation), &class) {
                        return Judgement::Deny { reason };
                    }
                    footprint.add(&name(invocation), effect_of(&class));
                }
                let names: Vec<_> = footprint.programs.iter().map(String::as_str).collect();
                ask(format!("{refusal} It would run: {}.", names.join(", ")), footprint)
            }
            Err(deep) if deep.is_final() => Judgement::Deny { reason: block::by_guard(&deep) },
            Err(_) => match block::unread(&self.rules, command) {
                Some(reason) => Judgement::Deny { reason },
                None => ask(refusal.to_string(), Footprint::UNKNOWN),
            },
        }
    }

    fn block(&self, words: &[String], class: &Result<(), Objection>) -> Option<String> {
        block::command(&self.rules, words, effect_of(class) < Effect::Mutation)
    }

    /// What stands against a command by what it is, whether or not its program is on the list.
    fn class(&self, command: &Simple) -> Result<(), Objection> {
        let program =
            programs::find(&command.program).ok_or("it is not on the list of programs that only read")?;
        let texts = options::texts(&command.arguments)?;
        program.check.map_or(Ok(()), |check| check(&texts))?;
        // Those of kubectl's templates match no file.
        let expands = |word: &Word| {
            word.before_glob().is_some_and(|before| command.program != "kubectl" || !before.contains('{'))
        };
        if !program.takes_wildcards(&command.program) && command.arguments.iter().any(expands) {
            return Err(Objection::mutation("a wildcard can become any number of arguments; quote it"));
        }
        if program.files == Files::Reads {
            command.arguments.iter().try_for_each(|word| paths::check(word, &self.kubeconfigs))?;
        }
        Ok(())
    }

    fn class_of_invocation(&self, invocation: &Invocation) -> Result<(), Objection> {
        let literal: Option<Vec<_>> = invocation.words.iter().cloned().collect();
        match literal.as_deref().and_then(simple) {
            Some(command) => self.class(&command),
            None if programs::find(&name(invocation)).is_some_and(|it| it.ignores_arguments()) => Ok(()),
            None => Err(Objection::mutation("what it would be told is not known")),
        }
    }

    /// Whether a command runs unasked, given what stands against it.
    fn permit(
        &self,
        command: &Simple,
        class: Result<(), Objection>,
        saved: &[Prefix],
    ) -> Result<(), Objection> {
        let effect = effect_of(&class);
        let saved = if kubectl::chooses_its_cluster(command) { &[] } else { saved };
        let mut prefixes = self.rules.allow.iter().chain(saved);
        if prefixes.any(|prefix| self.helps(prefix, command, effect)) {
            return Ok(());
        }
        class?;
        let listed = match self.rules.builtin {
            BuiltinAllowlist::None => false,
            BuiltinAllowlist::Core => programs::is_core(&command.program),
            BuiltinAllowlist::Extended => true,
        };
        if listed { Ok(()) } else { Err(Objection::read("it is not on the list of this server")) }
    }

    /// Whether a prefix allows a command. It allows nothing worse than what it says itself: `kubectl get` no
    /// Secrets, and `find` no `-delete`.
    fn helps(&self, prefix: &Prefix, command: &Simple, effect: Effect) -> bool {
        let own = || {
            let words: Vec<_> = prefix.words().iter().map(|word| literal(word)).collect();
            simple(&words).map(|own| effect_of(&self.class(&own)))
        };
        prefix.allows(&words(command)) && own().is_some_and(|own| own >= effect)
    }
}

fn effect_of(class: &Result<(), Objection>) -> Effect {
    class.as_ref().map_or_else(|objection| objection.effect, |()| Effect::Read)
}

fn literal(text: &str) -> Word {
    Word(vec![Piece::Literal(text.to_owned())])
}

fn simple(words: &[Word]) -> Option<Simple> {
    let (program, arguments) = words.split_first()?;
    let program = program.0.iter().all(|it| matches!(it, Piece::Literal(_))).then(|| program.text())?;
    Some(Simple { program, arguments: arguments.to_vec(), redirects: Vec::new() })
}

fn words(command: &Simple) -> Vec<String> {
    std::iter::once(command.program.clone()).chain(command.arguments.iter().map(Word::text)).collect()
}

/// The words, with a placeholder for each that only a shell can resolve.
fn known_words(invocation: &Invocation) -> Vec<String> {
    let text = |word: &Option<Word>| word.as_ref().map_or_else(|| "…".to_owned(), Word::text);
    invocation.words.iter().map(text).collect()
}

fn name(invocation: &Invocation) -> String {
    known_words(invocation).into_iter().next().unwrap_or_default()
}
