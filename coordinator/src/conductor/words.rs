//! Messages about several nodes: the same text of many nodes is one message.

use std::collections::BTreeMap;

/// Names that are spelled out before "and n more".
const NAMES_MAX: usize = 4;

/// `client01, client02: text`, a line for each different text, in order of the first node.
pub(crate) fn group(messages: &[(String, String)]) -> String {
    let mut nodes_by_text: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for (node, text) in messages {
        let nodes = nodes_by_text.entry(text).or_default();
        if nodes.is_empty() {
            order.push(text);
        }
        nodes.push(node);
    }
    let lines = order.iter().map(|text| format!("{}: {text}", names(&nodes_by_text[text])));
    lines.collect::<Vec<_>>().join("\n")
}

/// `a, b and c`, or the first few and how many more.
pub(crate) fn names(nodes: &[&str]) -> String {
    match nodes {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] if nodes.len() <= NAMES_MAX => format!("{} and {last}", all.join(", ")),
        _ => format!(
            "{} and {} more",
            nodes[..NAMES_MAX - 1].join(", "),
            nodes.len() - (NAMES_MAX - 1)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_text_is_one_message() {
        let messages: Vec<(String, String)> = [("a", "x"), ("b", "y"), ("c", "x")]
            .map(|(node, text)| (node.to_owned(), text.to_owned()))
            .to_vec();
        assert_eq!(group(&messages), "a and c: x\nb: y");
    }

    #[test]
    fn many_names_are_counted() {
        assert_eq!(names(&["a", "b", "c", "d"]), "a, b, c and d");
        assert_eq!(names(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
    }
}
