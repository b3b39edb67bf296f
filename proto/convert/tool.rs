//! Tool results and output, from the agent's contract and from the executor's.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{
    ClientTool, ClientToolMode, Gate, Image, OutputStream, Ran, ToolEffect, ToolResult, ToolStatus,
    WrittenFile,
};

use super::{Malformed, non_empty};
use crate::{agent as wire, executor};

impl From<OutputStream> for wire::OutputStream {
    fn from(stream: OutputStream) -> Self {
        match stream {
            OutputStream::Stdout => Self::Stdout,
            OutputStream::Stderr => Self::Stderr,
        }
    }
}

impl TryFrom<wire::OutputStream> for OutputStream {
    type Error = Malformed;

    fn try_from(stream: wire::OutputStream) -> Result<Self, Malformed> {
        match stream {
            wire::OutputStream::Stdout => Ok(Self::Stdout),
            wire::OutputStream::Stderr => Ok(Self::Stderr),
            wire::OutputStream::Unspecified => Err(Malformed("output has no stream")),
        }
    }
}

impl TryFrom<executor::OutputStream> for OutputStream {
    type Error = Malformed;

    fn try_from(stream: executor::OutputStream) -> Result<Self, Malformed> {
        match stream {
            executor::OutputStream::Stdout => Ok(Self::Stdout),
            executor::OutputStream::Stderr => Ok(Self::Stderr),
            executor::OutputStream::Unspecified => Err(Malformed("output has no stream")),
        }
    }
}

impl From<ToolEffect> for wire::ToolEffect {
    fn from(effect: ToolEffect) -> Self {
        match effect {
            ToolEffect::Read => Self::Read,
            ToolEffect::SensitiveRead => Self::SensitiveRead,
            ToolEffect::Mutation => Self::Mutation,
        }
    }
}

impl TryFrom<wire::ToolEffect> for ToolEffect {
    type Error = Malformed;

    fn try_from(effect: wire::ToolEffect) -> Result<Self, Malformed> {
        match effect {
            wire::ToolEffect::Read => Ok(Self::Read),
            wire::ToolEffect::SensitiveRead => Ok(Self::SensitiveRead),
            wire::ToolEffect::Mutation => Ok(Self::Mutation),
            wire::ToolEffect::Unspecified => Err(Malformed("an approval has no effect")),
        }
    }
}

/// What an executor does not name is taken for the worst.
impl From<executor::EffectClass> for ToolEffect {
    fn from(effect: executor::EffectClass) -> Self {
        match effect {
            executor::EffectClass::Read => Self::Read,
            executor::EffectClass::SensitiveRead => Self::SensitiveRead,
            executor::EffectClass::Mutation | executor::EffectClass::Unspecified => Self::Mutation,
        }
    }
}

impl From<Gate> for wire::ToolGate {
    fn from(gate: Gate) -> Self {
        match gate {
            Gate::Open => Self::Unspecified,
            Gate::Waits => Self::Waits,
            Gate::Forbidden => Self::Forbidden,
        }
    }
}

impl From<wire::ToolGate> for Gate {
    fn from(gate: wire::ToolGate) -> Self {
        match gate {
            wire::ToolGate::Unspecified => Self::Open,
            wire::ToolGate::Waits => Self::Waits,
            wire::ToolGate::Forbidden => Self::Forbidden,
        }
    }
}

impl From<ToolStatus> for wire::ToolStatus {
    fn from(status: ToolStatus) -> Self {
        match status {
            ToolStatus::Success => Self::Success,
            ToolStatus::Error => Self::Error,
            ToolStatus::NoData => Self::NoData,
        }
    }
}

impl From<ToolResult> for wire::ToolResult {
    fn from(result: ToolResult) -> Self {
        Self {
            status: wire::ToolStatus::from(result.status).into(),
            data: result.data,
            error: result.error.unwrap_or_default(),
            return_code: result.return_code,
            invocation: result.invocation.unwrap_or_default(),
            elapsed: result.elapsed.and_then(|elapsed| elapsed.try_into().ok()),
            omitted_bytes: result.omitted_bytes,
            images: result.images.into_iter().map(Into::into).collect(),
            documents: result.documents.into_iter().map(Into::into).collect(),
            written: result.written.into_iter().map(Into::into).collect(),
            ran: result.ran.map(Into::into),
        }
    }
}

impl From<Ran> for wire::Ran {
    fn from(ran: Ran) -> Self {
        let Ran { ending, clock, sandbox, sandbox_layers, redacted_spans } = ran;
        let [clock, sandbox] = [clock, sandbox].map(Option::unwrap_or_default);
        Self { ending, clock, sandbox, sandbox_layers, redacted_spans }
    }
}

impl From<wire::Ran> for Ran {
    fn from(ran: wire::Ran) -> Self {
        let wire::Ran { ending, clock, sandbox, sandbox_layers, redacted_spans } = ran;
        Self { ending, clock: non_empty(clock), sandbox: non_empty(sandbox), sandbox_layers, redacted_spans }
    }
}

impl TryFrom<wire::ToolResult> for ToolResult {
    type Error = Malformed;

    fn try_from(result: wire::ToolResult) -> Result<Self, Malformed> {
        let status = match result.status() {
            wire::ToolStatus::Success => ToolStatus::Success,
            wire::ToolStatus::Error => ToolStatus::Error,
            wire::ToolStatus::NoData => ToolStatus::NoData,
            wire::ToolStatus::Unspecified => return Err(Malformed("a tool result has no status")),
        };
        Ok(Self {
            status,
            data: result.data,
            error: error_of(status, result.error),
            return_code: result.return_code,
            invocation: non_empty(result.invocation),
            elapsed: result.elapsed.and_then(|elapsed| elapsed.try_into().ok()),
            omitted_bytes: result.omitted_bytes,
            images: result.images.into_iter().map(Into::into).collect(),
            documents: result.documents.into_iter().map(Into::into).collect(),
            written: result.written.into_iter().map(Into::into).collect(),
            ran: result.ran.map(Into::into),
        })
    }
}

impl TryFrom<executor::Finished> for ToolResult {
    type Error = Malformed;

    fn try_from(finished: executor::Finished) -> Result<Self, Malformed> {
        let status = match finished.status() {
            executor::ToolStatus::Success => ToolStatus::Success,
            executor::ToolStatus::Error => ToolStatus::Error,
            executor::ToolStatus::NoData => ToolStatus::NoData,
            executor::ToolStatus::Unspecified => return Err(Malformed("a tool result has no status")),
        };
        let ran = Some(ran(&finished));
        Ok(Self {
            status,
            data: finished.data,
            error: error_of(status, finished.error),
            return_code: finished.exit_code,
            invocation: non_empty(finished.invocation),
            elapsed: finished.elapsed.and_then(|elapsed| elapsed.try_into().ok()),
            omitted_bytes: finished.omitted_bytes,
            images: finished.images.into_iter().map(inline).collect(),
            documents: Vec::new(),
            written: finished.written.into_iter().map(Into::into).collect(),
            ran,
        })
    }
}

fn ran(finished: &executor::Finished) -> Ran {
    let word = |name: &str, of: &str| name.strip_prefix(of).unwrap_or(name).to_ascii_lowercase();
    let clock = finished.clock();
    Ran {
        ending: word(finished.ending().as_str_name(), "ENDING_"),
        clock: (clock != executor::Clock::Unspecified).then(|| word(clock.as_str_name(), "CLOCK_")),
        sandbox: non_empty(finished.sandbox.clone()),
        sandbox_layers: finished.sandbox_layers.clone(),
        redacted_spans: finished.redacted_spans,
    }
}

fn inline(image: executor::InlineImage) -> Image {
    let data = STANDARD.encode(image.data);
    Image { url: format!("data:{};base64,{data}", image.media_type), ..Image::default() }
}

impl From<WrittenFile> for wire::WrittenFile {
    fn from(WrittenFile { path, bytes, created }: WrittenFile) -> Self {
        Self { path, bytes, created }
    }
}

impl From<wire::WrittenFile> for WrittenFile {
    fn from(wire::WrittenFile { path, bytes, created }: wire::WrittenFile) -> Self {
        Self { path, bytes, created }
    }
}

impl From<executor::WrittenFile> for WrittenFile {
    fn from(executor::WrittenFile { path, bytes, created }: executor::WrittenFile) -> Self {
        Self { path, bytes, created }
    }
}

impl From<ClientTool> for wire::ClientTool {
    fn from(tool: ClientTool) -> Self {
        let noop_response = match tool.mode {
            ClientToolMode::Pause => None,
            ClientToolMode::Noop(response) => Some(response),
        };
        Self {
            name: tool.name,
            description: tool.description,
            parameters_json: tool.parameters,
            noop_response,
        }
    }
}

impl From<wire::ClientTool> for ClientTool {
    fn from(tool: wire::ClientTool) -> Self {
        Self {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters_json,
            mode: tool.noop_response.map_or(ClientToolMode::Pause, ClientToolMode::Noop),
        }
    }
}

fn error_of(status: ToolStatus, error: String) -> Option<String> {
    (status == ToolStatus::Error).then_some(error)
}
