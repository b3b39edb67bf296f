//! What the fuzz targets hold against any input. Each panics when its promise is broken.

use std::sync::LazyLock;

use crate::{
    policy::{BuiltinAllowlist, Judgement, Policy, Prefix, Rules},
    process::Source,
    redact::{Redactor, Settings, Suspicion},
};

/// A command that is allowed is, as the text that runs, the same command.
pub fn parser(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let policy = Policy::default();
    if let Judgement::Allow { script, .. } = policy.judge(text, &[], &[]) {
        let again = policy.judge(&script, &[], &[]);
        assert!(matches!(again, Judgement::Allow { script: same, .. } if same == script));
    }
}

/// Every text is judged, and a rule that denies makes no verdict milder.
pub fn policy(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let strictness = |judgement: &Judgement| match judgement {
        Judgement::Allow { .. } => 0,
        Judgement::Ask { .. } => 1,
        Judgement::Deny { .. } => 2,
    };
    let deny = ["ls", "kubectl get"].iter().filter_map(|text| Prefix::new(text)).collect();
    let rules = Rules { builtin: BuiltinAllowlist::Extended, allow: Vec::new(), deny };
    let denying = Policy { kubeconfigs: Vec::new(), rules };
    let plain = Policy::default().judge(text, &[], &[]);
    assert!(strictness(&denying.judge(text, &[], &[])) >= strictness(&plain));
}

/// What is masked does not depend on the pieces in which it comes.
pub fn redactor(bytes: &[u8]) {
    static REDACTOR: LazyLock<Option<Redactor>> =
        LazyLock::new(|| Redactor::new(Settings::default(), &[]).ok());
    let (Some(redactor), Some((first, text))) = (&*REDACTOR, bytes.split_first()) else { return };
    let masked = |size: usize| {
        let mut masker = redactor.masker(Suspicion::Usual);
        let mut shown: Vec<u8> =
            text.chunks(size).flat_map(|piece| masker.push(Source::Stdout, piece)).collect();
        shown.extend(masker.finish().0);
        (shown, masker.spans())
    };
    assert_eq!(masked(usize::from(*first).max(1)), masked(text.len().max(1)));
}
