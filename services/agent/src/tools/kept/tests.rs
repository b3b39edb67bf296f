//! Long results, cut and read on.

use super::*;

const MOST: u64 = 500;

fn long() -> ToolResult {
    let lines: String = (0..3000).map(|n| format!("{n}: \"ä\" und so weiter\n")).collect();
    ToolResult { status: ToolStatus::Success, data: lines, error: None, ..ToolResult::error("") }
}

fn read(arguments: &serde_json::Value) -> ToolCall {
    ToolCall { id: CallId::new("r"), name: NAME.into(), arguments: arguments.to_string() }
}

#[test]
fn the_pages_of_a_result_are_the_result() {
    let kept = KeptResults::new(MOST);
    let whole = long().data;
    let mut result = kept.fit(&CallId::new("c1"), long());
    let mut pages = String::new();
    while let Some((page, hint)) = result.data.split_once(MARKER) {
        assert!(tokens::of_text(&result.data) <= MOST, "{}", tokens::of_text(&result.data));
        pages.push_str(page);
        assert_eq!(result.omitted_bytes as usize, whole.len() - pages.len());
        let (_, arguments) = hint.trim_end_matches('.').split_once(" with ").unwrap();
        let call = read(&serde_json::from_str(arguments).unwrap());
        let plan = kept.plan(&call);
        assert_eq!(plan.verdict, ToolVerdict::Allow);
        assert_eq!(plan.description, format!("Read the result of c1 from byte {}", pages.len()));
        result = kept.run(&call);
        assert_eq!(kept.fit(&call.id, result.clone()), result, "a page is not cut again");
    }
    assert_eq!((pages + &result.data, result.omitted_bytes), (whole, 0));
}

#[test]
fn what_fits_is_left_alone() {
    let short = ToolResult { data: "short".into(), ..long() };
    assert_eq!(KeptResults::new(MOST).fit(&CallId::new("c1"), short.clone()), short);
}

#[test]
fn what_is_not_kept_is_refused() {
    let kept = KeptResults::new(MOST);
    let length = long().data.len();
    kept.fit(&CallId::new("c1"), long());
    for (arguments, why) in [
        (json!({"tool_call_id": "c2", "offset": 0}), "only results that were cut"),
        (json!({"tool_call_id": "c1", "offset": length}), "there is nothing at"),
        (json!({"tool_call_id": "c1", "offset": -1}), "cannot be read"),
        (json!([]), "cannot be read"),
    ] {
        let call = read(&arguments);
        let ToolVerdict::Refuse(reason) = kept.plan(&call).verdict else { panic!("{arguments} is allowed") };
        assert!(reason.contains(why), "{reason}");
        assert_eq!(kept.run(&call), ToolResult::error(reason));
    }
}

#[test]
fn a_run_keeps_only_so_much() {
    let kept = KeptResults::new(MOST);
    let huge = ToolResult { data: "word ".repeat(MOST_KEPT / 5 - 20_000), ..long() };
    assert!(kept.fit(&CallId::new("c1"), huge).data.contains(NAME));
    let cut = kept.fit(&CallId::new("c2"), ToolResult { data: "word ".repeat(40_000), ..long() });
    assert!(cut.data.ends_with(MARKER) && cut.omitted_bytes > 0);
    let call = read(&json!({"tool_call_id": "c2", "offset": 0}));
    assert!(kept.run(&call).error.is_some());
}
