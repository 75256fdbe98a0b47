//! Whether all nodes see the same file system. Pure.
//!
//! Whoever makes the campaign's directory leaves a token in its mark, and all others read it there: a
//! node with another token has another directory, whatever its mount is called.

use std::collections::BTreeMap;

use iofleet_shared::facts::TargetFacts;

/// The nodes that see another directory than most, and what of.
pub(crate) fn strangers<'a>(
    nodes: impl Iterator<Item = (&'a str, &'a TargetFacts)> + Clone,
) -> Vec<(String, String)> {
    let mut by_token: BTreeMap<&str, Vec<&TargetFacts>> = BTreeMap::new();
    for (_, target) in nodes.clone() {
        by_token.entry(&target.token).or_default().push(target);
    }
    // Of several that are as frequent, that of the first node.
    let count = |token: &str| by_token[token].len();
    let most = by_token.values().map(Vec::len).max().unwrap_or(0);
    let usual = nodes.clone().map(|(_, target)| target).find(|target| count(&target.token) == most);
    let Some(usual) = usual else { return Vec::new() };
    let named = |target: &TargetFacts| format!("{} from {}", target.fs_type, target.mount_source);
    let others = nodes.filter(|(_, target)| target.token != usual.token);
    others
        .map(|(node, target)| {
            let text = format!(
                "its directory at target.path is not the one of the other nodes: it lies on {}, \
                 and theirs on {}; mount the same file system there, or use {{node}} in target.path \
                 where each node is to have its own",
                named(target),
                named(usual)
            );
            (node.to_owned(), text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(source: &str, token: &str) -> TargetFacts {
        TargetFacts {
            fs_type: "nfs4".to_owned(),
            mount_source: source.to_owned(),
            mount_options: String::new(),
            free_bytes: 1,
            total_bytes: 1,
            free_inodes: None,
            alignment: None,
            network: None,
            token: token.to_owned(),
        }
    }

    #[test]
    fn who_has_another_token_is_named_with_both_file_systems() {
        let (ours, disk) = (target("s:/x", "1"), target("/dev/sda1", "2"));
        let fleet = [("a", &ours), ("b", &disk), ("c", &ours)];
        let strangers = strangers(fleet.into_iter());
        let [(node, text)] = &strangers[..] else { panic!("{strangers:?}") };
        assert_eq!(node, "b");
        assert!(text.contains("nfs4 from /dev/sda1") && text.contains("nfs4 from s:/x"), "{text}");
    }

    /// The same name of a mount proves nothing.
    #[test]
    fn mounts_of_one_name_may_be_two() {
        let (one, other) = (target("tmpfs", "1"), target("tmpfs", "2"));
        assert_eq!(strangers([("a", &one), ("b", &other)].into_iter()).len(), 1);
        assert_eq!(strangers([("a", &one), ("b", &one)].into_iter()), []);
        assert_eq!(strangers(std::iter::empty()), []);
    }
}
