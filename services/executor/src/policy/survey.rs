//! Every program that a command line would run, at any nesting.
//!
//! What only a shell can resolve makes a program's arguments unknown. A word that was not taken apart completely
//! is never taken for a literal one.

use brush_parser::{
    Parser, ParserOptions,
    ast::{
        AndOr, AssignmentValue, Command, CommandPrefixOrSuffixItem as Item, CompoundCommand, CompoundList,
        ExtendedTestExpr, IoFileRedirectKind as Kind, IoFileRedirectTarget as Target, IoRedirect, Pipeline,
        RedirectList, SimpleCommand,
    },
    word::{self, WordPiece, WordPieceWithSource},
};

use super::{
    Effect,
    guard::{Refusal, shallow},
    parse::literal,
    script::Word,
};

/// A program that would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Invocation {
    /// The program and its arguments; `None` for what only a shell can resolve.
    pub(super) words: Vec<Option<Word>>,
}

/// What a command line would do.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    pub(super) invocations: Vec<Invocation>,
    /// What it does by itself, beside what its programs do.
    pub(super) effect: Effect,
}

/// Surveys a command line that [`super::guard::guard`] has measured.
pub(super) fn survey(text: &str) -> Result<Survey, Refusal> {
    shallow(text)?;
    let mut walk = Walk {
        options: ParserOptions::default(),
        survey: Survey { invocations: Vec::new(), effect: Effect::Read },
    };
    walk.text(text)?;
    Ok(walk.survey)
}

struct Walk {
    options: ParserOptions,
    survey: Survey,
}

type Walked = Result<(), Refusal>;

impl Walk {
    fn text(&mut self, text: &str) -> Walked {
        let program =
            Parser::new(text.as_bytes(), &self.options).parse_program().map_err(|_| Refusal::Syntax)?;
        program.complete_commands.iter().try_for_each(|list| self.list(list))
    }

    fn list(&mut self, list: &CompoundList) -> Walked {
        for item in &list.0 {
            self.pipeline(&item.0.first)?;
            for next in &item.0.additional {
                let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = next;
                self.pipeline(pipeline)?;
            }
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Walked {
        pipeline.seq.iter().try_for_each(|command| self.command(command))
    }

    fn command(&mut self, command: &Command) -> Walked {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                self.compound(compound)?;
                self.redirects(redirects.as_ref())
            }
            Command::Function(function) => {
                self.compound(&function.body.0)?;
                self.redirects(function.body.1.as_ref())
            }
            Command::ExtendedTest(test, redirects) => {
                self.test(&test.expr)?;
                self.redirects(redirects.as_ref())
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) -> Walked {
        match compound {
            CompoundCommand::Arithmetic(it) => self.word(&it.expr.value),
            CompoundCommand::ArithmeticForClause(it) => {
                let parts = [&it.initializer, &it.condition, &it.updater];
                parts.into_iter().flatten().try_for_each(|part| self.word(&part.value))?;
                self.list(&it.body.list)
            }
            CompoundCommand::BraceGroup(it) => self.list(&it.list),
            CompoundCommand::Subshell(it) => self.list(&it.list),
            CompoundCommand::ForClause(it) => {
                it.values.iter().flatten().try_for_each(|value| self.word(&value.value))?;
                self.list(&it.body.list)
            }
            CompoundCommand::CaseClause(it) => {
                self.word(&it.value.value)?;
                for case in &it.cases {
                    case.patterns.iter().try_for_each(|pattern| self.word(&pattern.value))?;
                    case.cmd.iter().try_for_each(|list| self.list(list))?;
                }
                Ok(())
            }
            CompoundCommand::IfClause(it) => {
                self.list(&it.condition)?;
                self.list(&it.then)?;
                for clause in it.elses.iter().flatten() {
                    clause.condition.iter().try_for_each(|list| self.list(list))?;
                    self.list(&clause.body)?;
                }
                Ok(())
            }
            CompoundCommand::WhileClause(it) | CompoundCommand::UntilClause(it) => {
                self.list(&it.0)?;
                self.list(&it.1.list)
            }
            CompoundCommand::Coprocess(it) => self.command(&it.body),
        }
    }

    fn test(&mut self, test: &ExtendedTestExpr) -> Walked {
        match test {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.test(left)?;
                self.test(right)
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => self.test(inner),
            ExtendedTestExpr::UnaryTest(_, word) => self.word(&word.value),
            ExtendedTestExpr::BinaryTest(_, left, right) => {
                self.word(&left.value)?;
                self.word(&right.value)
            }
        }
    }

    fn simple(&mut self, simple: &SimpleCommand) -> Walked {
        let mut words = Vec::new();
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.item(item, &mut Vec::new())?;
            if matches!(item, Item::AssignmentWord(..)) {
                // `PATH=…` decides what the programs are.
                self.survey.effect = Effect::Mutation;
            }
        }
        if let Some(name) = &simple.word_or_name {
            self.argument(&name.value, &mut words)?;
        }
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, &mut words)?;
        }
        if simple.word_or_name.is_some() {
            self.survey.invocations.push(Invocation { words });
        }
        Ok(())
    }

    fn item(&mut self, item: &Item, words: &mut Vec<Option<Word>>) -> Walked {
        match item {
            Item::IoRedirect(redirect) => self.redirect(redirect),
            Item::Word(word) => self.argument(&word.value, words),
            Item::AssignmentWord(assignment, word) => {
                if let AssignmentValue::Array(elements) = &assignment.value {
                    words.push(None);
                    return elements.iter().try_for_each(|(index, value)| {
                        index.iter().chain([value]).try_for_each(|word| self.word(&word.value))
                    });
                }
                self.argument(&word.value, words)
            }
            Item::ProcessSubstitution(_, shell) => {
                words.push(None);
                self.list(&shell.list)
            }
        }
    }

    fn argument(&mut self, raw: &str, words: &mut Vec<Option<Word>>) -> Walked {
        words.push(literal(raw, &self.options).ok());
        self.word(raw)
    }

    fn redirects(&mut self, redirects: Option<&RedirectList>) -> Walked {
        redirects.into_iter().flat_map(|list| &list.0).try_for_each(|redirect| self.redirect(redirect))
    }

    fn redirect(&mut self, redirect: &IoRedirect) -> Walked {
        match redirect {
            IoRedirect::File(_, kind, target) => self.file_redirect(kind, target),
            IoRedirect::HereDocument(_, document) if document.requires_expansion => {
                let pieces = word::parse_heredoc(&document.doc.value, &self.options);
                self.pieces(&document.doc.value, &pieces.map_err(|_| Refusal::Syntax)?)
            }
            IoRedirect::HereDocument(..) => Ok(()),
            IoRedirect::HereString(_, word) => self.word(&word.value),
            IoRedirect::OutputAndError(word, _) => {
                self.touches(&word.value, Effect::Mutation);
                self.word(&word.value)
            }
        }
    }

    fn file_redirect(&mut self, kind: &Kind, target: &Target) -> Walked {
        let effect = match kind {
            Kind::Read | Kind::DuplicateInput => Effect::SensitiveRead,
            Kind::Write | Kind::Append | Kind::ReadAndWrite | Kind::Clobber | Kind::DuplicateOutput => {
                Effect::Mutation
            }
        };
        match target {
            Target::Filename(word) => {
                self.touches(&word.value, effect);
                self.word(&word.value)
            }
            Target::Duplicate(word) => {
                if !word.value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
                    self.touches(&word.value, effect);
                }
                self.word(&word.value)
            }
            Target::Fd(_) => Ok(()),
            Target::ProcessSubstitution(_, shell) => self.list(&shell.list),
        }
    }

    fn touches(&mut self, file: &str, effect: Effect) {
        if file != "/dev/null" {
            self.survey.effect = self.survey.effect.max(effect);
        }
    }

    /// Finds what an expansion within a word would run.
    fn word(&mut self, raw: &str) -> Walked {
        let pieces = word::parse(raw, &self.options).map_err(|_| Refusal::Syntax)?;
        self.pieces(raw, &pieces)
    }

    fn pieces(&mut self, raw: &str, pieces: &[WordPieceWithSource]) -> Walked {
        for WordPieceWithSource { piece, start_index, end_index } in pieces {
            match piece {
                WordPiece::CommandSubstitution(text) => self.text(text)?,
                WordPiece::BackquotedCommandSubstitution(text) => self.text(&text.replace("\\`", "`"))?,
                WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.pieces(raw, inner)?;
                }
                WordPiece::ArithmeticExpression(expression) => self.word(&expression.value)?,
                WordPiece::ParameterExpansion(_) => {
                    let inner = raw.get(*start_index..*end_index).and_then(|own| own.strip_prefix("${"));
                    if let Some(inner) = inner.and_then(|own| own.strip_suffix('}')) {
                        self.word(inner)?;
                    }
                }
                // What is left of an expansion here was not understood.
                WordPiece::Text(text) if ["$(", "`", "<(", ">("].iter().any(|it| text.contains(it)) => {
                    return Err(Refusal::Syntax);
                }
                WordPiece::Text(_)
                | WordPiece::SingleQuotedText(_)
                | WordPiece::AnsiCQuotedText(_)
                | WordPiece::TildeExpansion(_)
                | WordPiece::EscapeSequence(_) => {}
            }
        }
        Ok(())
    }
}
