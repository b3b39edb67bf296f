//! Where the values of a template stand in its shell text, and the references that keep them from being code.
//!
//! Each place is a marker: a word that means nothing to the shell. The text is parsed once; a marker that the walk
//! meets is replaced by a reference that fits its quoting, and one that it does not meet is refused. So what this
//! file does not know cannot become a hole.

use std::collections::{BTreeMap, BTreeSet};

use brush_parser::{
    Parser, ParserOptions,
    ast::{
        AndOr, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem as Item, CompoundCommand,
        CompoundList, IoFileRedirectKind as Kind, IoFileRedirectTarget as Target, IoRedirect, Pipeline,
        RedirectList, SimpleCommand,
    },
    word::{self, WordPiece, WordPieceWithSource},
};

/// Built-in commands that read their arguments as code, or as names of variables.
const READS_CODE: &[&str] = &[
    "eval",
    "source",
    ".",
    "let",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "unset",
    "read",
    "mapfile",
    "readarray",
    "trap",
    "alias",
    "command",
    "builtin",
    "exec",
    "ssh",
];
/// With `-v`, they read the name of a variable, which may hold code.
const READS_NAMES: &[&str] = &["[", "test", "printf"];
const SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "zsh", "ksh"];

const MARK: &str = "sleuthvalue";

/// The marker of the nth place.
pub(super) fn marker(place: usize) -> String {
    format!("{MARK}{place}x")
}

/// Whether a text could be taken for a marker.
pub(super) fn resembles_marker(text: &str) -> bool {
    text.contains(MARK)
}

/// A use of a slot, where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    quoting: Quoting,
    /// Whether a word begins with it, so that a dash would make it an option.
    begins: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quoting {
    Bare,
    Double,
    Single,
}

/// A text that is safe to run: values come in as variables.
#[derive(Debug)]
pub(super) struct Shell {
    pub(super) text: String,
    /// Slots whose values must not begin with a dash.
    pub(super) no_dash: BTreeSet<usize>,
}

/// Replaces the markers of `text`; each of the `places` stands for one of so many slots.
pub(super) fn compile(text: &str, places: &[usize], slots: usize) -> Result<Shell, String> {
    let mut walk = Walk { options: ParserOptions::default(), places: BTreeMap::new() };
    walk.program(text)?;
    let mut compiled = prelude(slots);
    let mut no_dash = BTreeSet::new();
    let mut rest = text;
    while let Some((before, number, after)) = next_marker(rest) {
        let (slot, place) = places.get(number).zip(walk.places.get(&number)).ok_or(
            "a value stands where the shell could read it as code, such as in `$(( ))`, `${ }`, `[[ ]]`, backquotes, \
             a quoted here-document or the name of a file to write",
        )?;
        compiled.push_str(before);
        compiled.push_str(&match place.quoting {
            Quoting::Bare => format!("${{{MARK}{slot}:+\"${MARK}{slot}\"}}"),
            Quoting::Double => format!("${{{MARK}{slot}}}"),
            Quoting::Single => format!("'\"${{{MARK}{slot}}}\"'"),
        });
        if place.begins {
            no_dash.insert(*slot);
        }
        rest = after;
    }
    compiled.push_str(rest);
    Ok(Shell { text: compiled, no_dash })
}

/// The variable that holds the value of a slot.
pub(super) fn variable(slot: usize) -> String {
    format!("{MARK}{slot}")
}

/// Keeps the values from the programs that are started, and from being changed.
fn prelude(slots: usize) -> String {
    if slots == 0 {
        return String::new();
    }
    let names = (0..slots).map(variable).collect::<Vec<_>>().join(" ");
    format!("export -n {names}; readonly {names}\n")
}

fn next_marker(text: &str) -> Option<(&str, usize, &str)> {
    let (before, rest) = text.split_once(MARK)?;
    let (number, after) = rest.split_once('x')?;
    Some((before, number.parse().ok()?, after))
}

fn has_marker(text: &str) -> bool {
    text.contains(MARK)
}

struct Walk {
    options: ParserOptions,
    places: BTreeMap<usize, Place>,
}

impl Walk {
    fn program(&mut self, text: &str) -> Result<(), String> {
        let program = Parser::new(text.as_bytes(), &self.options).parse_program();
        let program = program.map_err(|error| format!("bash would not understand it: {error}"))?;
        program.complete_commands.iter().try_for_each(|list| self.list(list))
    }

    fn list(&mut self, list: &CompoundList) -> Result<(), String> {
        for item in &list.0 {
            self.pipeline(&item.0.first)?;
            for next in &item.0.additional {
                match next {
                    AndOr::And(pipeline) | AndOr::Or(pipeline) => self.pipeline(pipeline)?,
                }
            }
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Result<(), String> {
        pipeline.seq.iter().try_for_each(|command| self.command(command))
    }

    fn command(&mut self, command: &Command) -> Result<(), String> {
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
            // Some of its operators calculate, and a calculation can run code.
            Command::ExtendedTest(_, redirects) => self.redirects(redirects.as_ref()),
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) -> Result<(), String> {
        match compound {
            CompoundCommand::Arithmetic(_) => Ok(()),
            CompoundCommand::ArithmeticForClause(clause) => self.list(&clause.body.list),
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(subshell) => self.list(&subshell.list),
            CompoundCommand::ForClause(clause) => {
                clause.values.iter().flatten().try_for_each(|value| self.word(&value.value, true))?;
                self.list(&clause.body.list)
            }
            CompoundCommand::CaseClause(clause) => {
                self.word(&clause.value.value, false)?;
                clause.cases.iter().filter_map(|case| case.cmd.as_ref()).try_for_each(|list| self.list(list))
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition)?;
                self.list(&clause.then)?;
                for other in clause.elses.iter().flatten() {
                    other.condition.iter().try_for_each(|list| self.list(list))?;
                    self.list(&other.body)?;
                }
                Ok(())
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0)?;
                self.list(&clause.1.list)
            }
            CompoundCommand::Coprocess(coprocess) => self.command(&coprocess.body),
        }
    }

    fn simple(&mut self, command: &SimpleCommand) -> Result<(), String> {
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                Item::AssignmentWord(assignment, _) => {
                    if matches!(assignment.name, AssignmentName::VariableName(_)) {
                        self.assigned(&assignment.value)?;
                    }
                }
                Item::Word(word) => self.word(&word.value, true)?,
                Item::IoRedirect(redirect) => self.redirect(redirect)?,
                Item::ProcessSubstitution(_, subshell) => self.list(&subshell.list)?,
            }
        }
        let mut words: Vec<&str> = command.word_or_name.iter().map(|word| word.value.as_str()).collect();
        let mut options_over = false;
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            match item {
                Item::Word(word) | Item::AssignmentWord(_, word) => {
                    words.push(&word.value);
                    self.word(&word.value, !options_over)?;
                    options_over |= word.value == "--";
                }
                Item::IoRedirect(redirect) => self.redirect(redirect)?,
                Item::ProcessSubstitution(_, subshell) => self.list(&subshell.list)?,
            }
        }
        check_program(&words)
    }

    fn assigned(&mut self, value: &AssignmentValue) -> Result<(), String> {
        match value {
            AssignmentValue::Scalar(word) => self.word(&word.value, true),
            AssignmentValue::Array(items) => items
                .iter()
                .filter(|(index, _)| index.is_none())
                .try_for_each(|(_, word)| self.word(&word.value, true)),
        }
    }

    fn redirects(&mut self, redirects: Option<&RedirectList>) -> Result<(), String> {
        redirects.iter().flat_map(|list| &list.0).try_for_each(|redirect| self.redirect(redirect))
    }

    fn redirect(&mut self, redirect: &IoRedirect) -> Result<(), String> {
        match redirect {
            IoRedirect::File(_, Kind::Read, Target::Filename(word)) | IoRedirect::HereString(_, word) => {
                self.word(&word.value, false)
            }
            IoRedirect::File(_, _, Target::ProcessSubstitution(_, subshell)) => self.list(&subshell.list),
            IoRedirect::HereDocument(_, document) if document.requires_expansion => {
                let pieces = word::parse_heredoc(&document.doc.value, &self.options)
                    .map_err(|error| error.to_string())?;
                self.pieces(&pieces, Quoting::Double)
            }
            // Nothing here may hold a value.
            IoRedirect::File(..) | IoRedirect::HereDocument(..) | IoRedirect::OutputAndError(..) => Ok(()),
        }
    }

    /// A word. `may_be_option` where a leading dash would mean something.
    fn word(&mut self, text: &str, may_be_option: bool) -> Result<(), String> {
        if !has_marker(text) && !text.contains("$(") {
            return Ok(());
        }
        let pieces = word::parse(text, &self.options).map_err(|error| error.to_string())?;
        self.pieces(&pieces, Quoting::Bare)?;
        if !may_be_option {
            return Ok(());
        }
        let mut rest = text;
        loop {
            let unquoted = rest.trim_start_matches(['"', '\'']);
            let Some(("", number, after)) = next_marker(unquoted) else { break };
            if let Some(place) = self.places.get_mut(&number) {
                place.begins = true;
            }
            rest = after;
        }
        Ok(())
    }

    fn pieces(&mut self, pieces: &[WordPieceWithSource], quoting: Quoting) -> Result<(), String> {
        for piece in pieces {
            match &piece.piece {
                WordPiece::Text(text) => self.found(text, quoting),
                WordPiece::SingleQuotedText(text) => self.found(text, Quoting::Single),
                WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.pieces(inner, Quoting::Double)?;
                }
                WordPiece::CommandSubstitution(text) => self.program(text)?,
                // What they hold is code, or would have to be quoted in ways of its own.
                WordPiece::AnsiCQuotedText(_)
                | WordPiece::TildeExpansion(_)
                | WordPiece::ParameterExpansion(_)
                | WordPiece::BackquotedCommandSubstitution(_)
                | WordPiece::EscapeSequence(_)
                | WordPiece::ArithmeticExpression(_) => {}
            }
        }
        Ok(())
    }

    fn found(&mut self, text: &str, quoting: Quoting) {
        let mut rest = text;
        while let Some((_, number, after)) = next_marker(rest) {
            self.places.insert(number, Place { quoting, begins: false });
            rest = after;
        }
    }
}

/// Refuses values that the program would read as code of a shell.
fn check_program(words: &[&str]) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    if has_marker(program) {
        return Err("a value cannot name the program".to_owned());
    }
    let any = || arguments.iter().any(|word| has_marker(word));
    let name = base(program);
    if READS_CODE.contains(&name) && any() {
        return Err(format!("`{name}` would read a value as code"));
    }
    if READS_NAMES.contains(&name) && arguments.contains(&"-v") && any() {
        return Err(format!("`{name} -v` would read a value as code"));
    }
    let Some(shell) = words.iter().position(|word| SHELLS.contains(&base(word))) else { return Ok(()) };
    let code =
        words.iter().skip(shell).skip_while(|word| !(word.starts_with('-') && word.ends_with('c'))).nth(1);
    match code {
        Some(code) if has_marker(code) => Err(
            "a shell would read a value as code; give it as an argument: `sh -c '... \"$1\"' sh {{ name }}`"
                .to_owned(),
        ),
        Some(_) | None => Ok(()),
    }
}

fn base(word: &str) -> &str {
    let name = word.trim_matches(['"', '\'', '\\']);
    name.rsplit('/').next().unwrap_or(name)
}
