//! Tool results as a run takes them.

use domain::{ToolResult, tokens};
use wire::executor;

/// Marks where a result was cut.
const MARKER: &str = "\n\n[TRUNCATED]";

/// What an executor returned; a result that makes no sense is an error result.
pub(super) fn from_executor(finished: executor::Finished) -> ToolResult {
    finished.try_into().unwrap_or_else(|malformed: wire::Malformed| {
        ToolResult::error(format!("The executor's result cannot be read: {malformed}"))
    })
}

/// Cuts a result that would take more than `most` tokens of a model's window.
pub(crate) fn fit(mut result: ToolResult, most: u64) -> ToolResult {
    let size = tokens::of_text(&result.data);
    if size <= most {
        return result;
    }
    // The estimate grows evenly enough with the text for a cut in proportion.
    let keep = (result.data.len() as u64).saturating_mul(most) / size;
    let keep = usize::try_from(keep).unwrap_or(usize::MAX);
    let cut = result.data.floor_char_boundary(keep);
    result.omitted_bytes = result.omitted_bytes.saturating_add((result.data.len() - cut) as u64);
    result.data.truncate(cut);
    result.data.push_str(MARKER);
    result
}

#[cfg(test)]
mod tests {
    use domain::ToolStatus;

    use super::*;

    #[test]
    fn a_cut_result_fits_and_says_so() {
        let result = ToolResult { status: ToolStatus::Success, error: None, ..ToolResult::error("") };
        let long = ToolResult { data: "ä: \"x\" und so weiter\n".repeat(5000), ..result.clone() };
        let before = long.data.len();
        let cut = fit(long, 1000);
        assert!(cut.data.ends_with(MARKER));
        assert!(tokens::of_text(&cut.data) <= 1010, "{}", tokens::of_text(&cut.data));
        assert_eq!(cut.omitted_bytes as usize + cut.data.len() - MARKER.len(), before);
        let short = ToolResult { data: "short".into(), ..result };
        assert_eq!(fit(short.clone(), 1000), short);
    }
}
