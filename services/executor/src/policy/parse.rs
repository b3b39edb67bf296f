//! From a command line to a [`Script`], or to the reason why it is none.

use brush_parser::{
    Parser, ParserOptions,
    ast::{
        AndOr, AndOrList, Command, CommandPrefixOrSuffixItem as Item, IoFileRedirectKind as Kind,
        IoFileRedirectTarget as Target, IoRedirect, SeparatorOperator, SimpleCommand,
    },
    word::{self, TildeExpr, WordPiece, WordPieceWithSource},
};

use super::guard::{
    Refusal::{self, Construct},
    SUBSTITUTION, VARIABLE, guard,
};
use super::script::{Join, Piece, Pipeline, Redirect, Script, Simple, Word};

/// Reads a command line. Long ones take milliseconds: call it where blocking is fine.
pub(super) fn script(text: &str) -> Result<Script, Refusal> {
    guard(text)?;
    let options = ParserOptions::default();
    let program = Parser::new(text.as_bytes(), &options).parse_program().map_err(|_| Refusal::Syntax)?;
    let mut pipelines = Vec::new();
    for item in program.complete_commands.iter().flat_map(|list| &list.0) {
        if matches!(item.1, SeparatorOperator::Async) {
            return Err(Construct("a background job (`&`)"));
        }
        join(&item.0, &options, &mut pipelines)?;
    }
    let mut pipelines = pipelines.into_iter();
    let (_, first) = pipelines.next().ok_or(Refusal::Empty)?;
    Ok(Script { first, rest: pipelines.collect() })
}

fn join(
    list: &AndOrList,
    options: &ParserOptions,
    pipelines: &mut Vec<(Join, Pipeline)>,
) -> Result<(), Refusal> {
    let rest = list.additional.iter().map(|next| match next {
        AndOr::And(pipeline) => (Join::And, pipeline),
        AndOr::Or(pipeline) => (Join::Or, pipeline),
    });
    for (join, pipeline) in std::iter::once((Join::Then, &list.first)).chain(rest) {
        if pipeline.timed.is_some() {
            return Err(Construct("`time`"));
        }
        // `! !` alone has no command at all, and two of them cancel each other.
        if pipeline.bang || pipeline.seq.is_empty() {
            return Err(Construct("`!`"));
        }
        let commands = pipeline.seq.iter().map(|command| simple(command, options));
        pipelines.push((join, Pipeline(commands.collect::<Result<_, _>>()?)));
    }
    Ok(())
}

fn simple(command: &Command, options: &ParserOptions) -> Result<Simple, Refusal> {
    let SimpleCommand { prefix, word_or_name, suffix } = match command {
        Command::Simple(simple) => simple,
        Command::Compound(..) => return Err(Construct("a loop, a condition or a group")),
        Command::Function(_) => return Err(Construct("a function")),
        Command::ExtendedTest(..) => return Err(Construct("`[[ ]]`")),
    };
    let mut arguments = Vec::new();
    let mut redirects = Vec::new();
    let before = prefix.iter().flat_map(|prefix| &prefix.0);
    let after = suffix.iter().flat_map(|suffix| &suffix.0);
    for item in before.chain(after) {
        match item {
            Item::IoRedirect(redirect) => redirects.push(allowed_redirect(redirect, options)?),
            Item::Word(word) => arguments.push(literal(&word.value, options)?),
            // As an argument, as in `dd of=x`, it is a word like any other.
            Item::AssignmentWord(_, word) if suffix_holds(suffix.as_ref(), item) => {
                arguments.push(literal(&word.value, options)?);
            }
            Item::AssignmentWord(..) => return Err(Construct("an assignment")),
            Item::ProcessSubstitution(..) => return Err(Construct("a process substitution")),
        }
    }
    let name = word_or_name.as_ref().ok_or(Construct("a redirection or assignment without a program"))?;
    let name = literal(&name.value, options)?;
    if !name.0.iter().all(|piece| matches!(piece, Piece::Literal(_))) {
        return Err(Construct("a program name that is not literal"));
    }
    Ok(Simple { program: name.text(), arguments, redirects })
}

fn suffix_holds(suffix: Option<&brush_parser::ast::CommandSuffix>, item: &Item) -> bool {
    suffix.is_some_and(|suffix| suffix.0.iter().any(|own| std::ptr::eq(own, item)))
}

fn allowed_redirect(redirect: &IoRedirect, options: &ParserOptions) -> Result<Redirect, Refusal> {
    const FILE: Refusal = Construct("a redirection to or from a file");
    let is_null = |word: &brush_parser::ast::Word| Ok(literal(&word.value, options)?.text() == "/dev/null");
    match redirect {
        IoRedirect::File(fd, kind, Target::Filename(word)) => match (fd, kind, is_null(word)?) {
            (None | Some(1), Kind::Write | Kind::Append | Kind::Clobber, true) => Ok(Redirect::DiscardOutput),
            (Some(2), Kind::Write | Kind::Append | Kind::Clobber, true) => Ok(Redirect::DiscardErrors),
            (None | Some(0), Kind::Read, true) => Ok(Redirect::EmptyInput),
            _ => Err(FILE),
        },
        IoRedirect::File(from, Kind::DuplicateOutput, Target::Fd(to)) => duplicate(*from, *to),
        IoRedirect::File(from, Kind::DuplicateOutput, Target::Duplicate(word)) => match word.value.as_str() {
            "1" => duplicate(*from, 1),
            "2" => duplicate(*from, 2),
            _ => Err(FILE),
        },
        IoRedirect::File(..) => Err(FILE),
        IoRedirect::OutputAndError(word, _) if is_null(word)? => Ok(Redirect::DiscardBoth),
        IoRedirect::OutputAndError(..) => Err(FILE),
        IoRedirect::HereDocument(..) | IoRedirect::HereString(..) => Err(Construct("a here-document")),
    }
}

fn duplicate(from: Option<i32>, to: i32) -> Result<Redirect, Refusal> {
    match (from.unwrap_or(1), to) {
        (2, 1) => Ok(Redirect::ErrorsToOutput),
        (1, 2) => Ok(Redirect::OutputToErrors),
        _ => Err(Construct("a redirection other than `2>&1` and `>&2`")),
    }
}

/// A word that means itself.
pub(super) fn literal(raw: &str, options: &ParserOptions) -> Result<Word, Refusal> {
    let mut word = Word::default();
    let mut braces = String::new();
    for WordPieceWithSource { piece, .. } in word::parse(raw, options).map_err(|_| Refusal::Syntax)? {
        match piece {
            WordPiece::Text(text) => {
                braces.push_str(&text);
                bare(&text, &mut word)?;
            }
            WordPiece::SingleQuotedText(text) => word.push_literal(&text),
            WordPiece::EscapeSequence(escape) => word.push_literal(escaped(&escape)),
            WordPiece::DoubleQuotedSequence(pieces) => word.push_literal(&double_quoted(pieces)?),
            WordPiece::TildeExpansion(TildeExpr::Home) if word.0.is_empty() => word.0.push(Piece::Home),
            WordPiece::TildeExpansion(_) => return Err(Construct("`~` with a name")),
            WordPiece::AnsiCQuotedText(_) | WordPiece::GettextDoubleQuotedSequence(_) => {
                return Err(Construct("`$'…'` or `$\"…\"`"));
            }
            WordPiece::ParameterExpansion(_) => return Err(Construct(VARIABLE)),
            WordPiece::CommandSubstitution(_) | WordPiece::BackquotedCommandSubstitution(_) => {
                return Err(Construct(SUBSTITUTION));
            }
            WordPiece::ArithmeticExpression(_) => return Err(Construct("arithmetic")),
        }
    }
    if expands_braces(&braces) { Err(Construct("brace expansion; quote the braces")) } else { Ok(word) }
}

/// Text outside quotes.
fn bare(text: &str, word: &mut Word) -> Result<(), Refusal> {
    // What the grammar should have recognised and did not. A `$` that expands nothing is only a `$`.
    if text.contains(['`', '(', ')', '<', '>', '|', '&', ';', '\'', '"', '\\', '\n']) {
        return Err(Construct("a special character that should be quoted"));
    }
    for symbol in text.chars() {
        match symbol {
            '*' | '?' => word.0.push(Piece::Glob(symbol)),
            _ => word.push_literal(symbol.encode_utf8(&mut [0; 4])),
        }
    }
    Ok(())
}

fn double_quoted(pieces: Vec<WordPieceWithSource>) -> Result<String, Refusal> {
    let mut text = String::new();
    for WordPieceWithSource { piece, .. } in pieces {
        match piece {
            WordPiece::Text(literal) => text.push_str(&literal),
            WordPiece::EscapeSequence(escape) => text.push_str(escaped(&escape)),
            WordPiece::ParameterExpansion(_) => return Err(Construct(VARIABLE)),
            WordPiece::CommandSubstitution(_) | WordPiece::BackquotedCommandSubstitution(_) => {
                return Err(Construct(SUBSTITUTION));
            }
            WordPiece::SingleQuotedText(_)
            | WordPiece::AnsiCQuotedText(_)
            | WordPiece::DoubleQuotedSequence(_)
            | WordPiece::GettextDoubleQuotedSequence(_)
            | WordPiece::TildeExpansion(_)
            | WordPiece::ArithmeticExpression(_) => return Err(Construct("an expansion within quotes")),
        }
    }
    Ok(text)
}

/// The character after a backslash; a backslash at the end of a line joins it to the next.
fn escaped(sequence: &str) -> &str {
    match sequence.strip_prefix('\\').unwrap_or(sequence) {
        "\n" => "",
        character => character,
    }
}

/// Whether bash would make several words of it. It is enough to see that it might.
fn expands_braces(bare: &str) -> bool {
    bare.split_once('{')
        .is_some_and(|(_, inside)| inside.contains('}') && (inside.contains(',') || inside.contains("..")))
}
