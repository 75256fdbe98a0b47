//! Host lists: `client[01-04,07]`, several by commas, IPv6 in brackets, a port after a colon.

use std::{collections::BTreeMap, net::Ipv6Addr};

use iofleet_shared::limits::{DEFAULT_PORT, NODES_MAX};

use super::WorkerAddress;

/// The workers of a host list, in order.
///
/// A worker's name is its place in the list without the port; where one host has several workers,
/// the port belongs to the name.
///
/// # Errors
/// What is wrong, in words for people.
pub fn parse(list: &str) -> Result<Vec<WorkerAddress>, String> {
    let mut workers: Vec<WorkerAddress> = Vec::new();
    for item in items(list)? {
        for (host, port) in entry(item)? {
            workers.push(WorkerAddress { name: host.clone(), host, port });
            if workers.len() > NODES_MAX as usize {
                return Err(format!("more than {NODES_MAX} workers"));
            }
        }
    }
    let mut by_host: BTreeMap<&str, Vec<u16>> = BTreeMap::new();
    for worker in &workers {
        let ports = by_host.entry(&worker.host).or_default();
        if ports.contains(&worker.port) {
            return Err(format!("`{}` stands twice in the list", address(worker)));
        }
        ports.push(worker.port);
    }
    let several: Vec<bool> = workers.iter().map(|w| by_host[w.host.as_str()].len() > 1).collect();
    for (worker, several) in workers.iter_mut().zip(several) {
        if several {
            worker.name = format!("{}:{}", bracketed(&worker.host), worker.port);
        }
    }
    Ok(workers)
}

/// A list that parses to the same workers.
#[must_use]
pub fn show(workers: &[WorkerAddress]) -> String {
    workers.iter().map(address).collect::<Vec<_>>().join(",")
}

fn address(worker: &WorkerAddress) -> String {
    let host = bracketed(&worker.host);
    if worker.port == DEFAULT_PORT { host } else { format!("{host}:{}", worker.port) }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// Items between the commas that stand outside of brackets.
fn items(list: &str) -> Result<Vec<&str>, String> {
    let mut items = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (at, c) in list.char_indices() {
        match c {
            '[' if inside => return Err(format!("`{list}`: a bracket within brackets")),
            '[' => inside = true,
            ']' if !inside => return Err(format!("`{list}`: a `]` without its `[`")),
            ']' => inside = false,
            ',' if !inside => {
                items.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err(format!("`{list}`: a `[` without its `]`"));
    }
    items.push(list[start..].trim());
    if items.iter().any(|item| item.is_empty()) {
        return Err(if list.trim().is_empty() {
            "an empty host list: name at least one worker, as in `client[01-04]`".to_owned()
        } else {
            format!("`{list}`: nothing between two commas")
        });
    }
    Ok(items)
}

/// Hosts and port of one item.
fn entry(item: &str) -> Result<Vec<(String, u16)>, String> {
    if let Some(rest) = item.strip_prefix('[')
        && let Some((inside, after)) = rest.split_once(']')
        && inside.contains(':')
    {
        let plain = inside.split('%').next().unwrap_or(inside);
        plain.parse::<Ipv6Addr>().map_err(|_| format!("`[{inside}]` is not an IPv6 address"))?;
        let port = match after.strip_prefix(':') {
            Some(port) => self::port(item, port)?,
            None if after.is_empty() => DEFAULT_PORT,
            None => return Err(format!("`{item}`: after the `]` comes `:PORT` or nothing")),
        };
        return Ok(vec![(inside.to_owned(), port)]);
    }
    if item.parse::<Ipv6Addr>().is_ok() {
        return Err(format!("`{item}`: write IPv6 in brackets, as in `[{item}]`"));
    }
    let (pattern, port) = match item.rsplit_once(':') {
        Some((pattern, port)) => (pattern, self::port(item, port)?),
        None => (item, DEFAULT_PORT),
    };
    let hosts = expand(item, pattern)?;
    for host in &hosts {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if host.is_empty() || host.starts_with('-') || !host.chars().all(legal) {
            return Err(format!("`{item}`: `{host}` is not a host name"));
        }
    }
    Ok(hosts.into_iter().map(|host| (host, port)).collect())
}

fn port(item: &str, text: &str) -> Result<u16, String> {
    let digits = text.chars().all(|c| c.is_ascii_digit());
    match text.parse::<u16>() {
        Ok(port) if port > 0 && digits => Ok(port),
        _ => Err(format!("`{item}`: `{text}` is not a port, which is 1 to 65535")),
    }
}

/// All names of a pattern; with several ranges the last runs fastest.
fn expand(item: &str, pattern: &str) -> Result<Vec<String>, String> {
    let Some((head, rest)) = pattern.split_once('[') else {
        return Ok(vec![pattern.to_owned()]);
    };
    let Some((ranges, tail)) = rest.split_once(']') else {
        return Err(format!("`{item}`: a `[` without its `]`"));
    };
    let tails = expand(item, tail)?;
    let mut names = Vec::new();
    for range in ranges.split(',') {
        for number in numbers(item, range.trim())? {
            if (names.len() + 1).saturating_mul(tails.len()) > NODES_MAX as usize {
                return Err(format!("`{item}` names more than {NODES_MAX} workers"));
            }
            names.push(number);
        }
    }
    let mut expanded = Vec::with_capacity(names.len() * tails.len());
    for number in &names {
        expanded.extend(tails.iter().map(|tail| format!("{head}{number}{tail}")));
    }
    Ok(expanded)
}

/// The numbers of `01-04` or `07`, with zeros in front as in its first number.
fn numbers(item: &str, range: &str) -> Result<Vec<String>, String> {
    let bad =
        || format!("`{item}`: `{range}` is not a number or a range of numbers, as in `[01-04,07]`");
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let number = |text: &str| {
        let digits = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| digits).ok_or_else(bad)
    };
    let (from, to) = (number(first)?, number(last)?);
    if from > to {
        return Err(format!("`{item}`: the range `{range}` runs backwards"));
    }
    if to - from >= u64::from(NODES_MAX) {
        return Err(format!("`{item}`: the range `{range}` names more than {NODES_MAX} workers"));
    }
    let width = if first.starts_with('0') { first.len() } else { 1 };
    if width > 20 {
        return Err(bad());
    }
    Ok((from..=to).map(|number| format!("{number:0width$}")).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(list: &str) -> Vec<String> {
        parse(list).unwrap().into_iter().map(|worker| worker.name).collect()
    }

    fn worker(name: &str, host: &str, port: u16) -> WorkerAddress {
        WorkerAddress { name: name.to_owned(), host: host.to_owned(), port }
    }

    #[test]
    fn ranges_keep_their_zeros() {
        assert_eq!(
            names("client[01-04,07]"),
            ["client01", "client02", "client03", "client04", "client07"]
        );
        assert_eq!(names("n[9-11]"), ["n9", "n10", "n11"]);
        assert_eq!(names("n[098-101]"), ["n098", "n099", "n100", "n101"]);
        assert_eq!(
            names("r[1-2]n[01-02].site"),
            ["r1n01.site", "r1n02.site", "r2n01.site", "r2n02.site"]
        );
        assert_eq!(names("a, b ,c"), ["a", "b", "c"]);
    }

    #[test]
    fn ports_and_addresses() {
        assert_eq!(
            parse("[fd00::1]:7000,10.0.0.1,node[1-2]:9000").unwrap(),
            [
                worker("fd00::1", "fd00::1", 7000),
                worker("10.0.0.1", "10.0.0.1", DEFAULT_PORT),
                worker("node1", "node1", 9000),
                worker("node2", "node2", 9000),
            ]
        );
        assert_eq!(
            parse("127.0.0.1:7001,127.0.0.1:7002,b").unwrap(),
            [
                worker("127.0.0.1:7001", "127.0.0.1", 7001),
                worker("127.0.0.1:7002", "127.0.0.1", 7002),
                worker("b", "b", DEFAULT_PORT),
            ]
        );
        assert_eq!(parse("[fe80::1%eth0]").unwrap()[0].host, "fe80::1%eth0");
    }

    #[test]
    fn wrong_lists_say_what_is_wrong() {
        let cases = [
            ("", "an empty host list: name at least one worker, as in `client[01-04]`"),
            ("a,,b", "`a,,b`: nothing between two commas"),
            ("a,", "`a,`: nothing between two commas"),
            ("n[1-", "`n[1-`: a `[` without its `]`"),
            ("n1]", "`n1]`: a `]` without its `[`"),
            ("n[[1]]", "`n[[1]]`: a bracket within brackets"),
            ("n[4-1]", "`n[4-1]`: the range `4-1` runs backwards"),
            ("n[a-b]", "`n[a-b]`: `a-b` is not a number or a range of numbers, as in `[01-04,07]`"),
            ("n[]", "`n[]`: `` is not a number or a range of numbers, as in `[01-04,07]`"),
            ("n[1-5000]", "`n[1-5000]`: the range `1-5000` names more than 4096 workers"),
            ("n[1-100]m[1-100]", "`n[1-100]m[1-100]` names more than 4096 workers"),
            ("a,b,a", "`a` stands twice in the list"),
            ("n[1-3],n2", "`n2` stands twice in the list"),
            ("a:1,a:1", "`a:1` stands twice in the list"),
            ("a:0", "`a:0`: `0` is not a port, which is 1 to 65535"),
            ("a:+1", "`a:+1`: `+1` is not a port, which is 1 to 65535"),
            ("a:http", "`a:http`: `http` is not a port, which is 1 to 65535"),
            ("fd00::1", "`fd00::1`: write IPv6 in brackets, as in `[fd00::1]`"),
            ("[fd00::g]", "`[fd00::g]` is not an IPv6 address"),
            ("[fd00::1]7737", "`[fd00::1]7737`: after the `]` comes `:PORT` or nothing"),
            ("a b", "`a b`: `a b` is not a host name"),
            ("-a", "`-a`: `-a` is not a host name"),
        ];
        for (list, expected) in cases {
            assert_eq!(parse(list).unwrap_err(), expected, "{list}");
        }
    }

    proptest! {
        #[test]
        fn no_list_makes_it_panic(list in "[a-c0-9\\[\\],:.% -]{0,40}") {
            let _ = parse(&list);
        }

        #[test]
        fn what_is_shown_parses_back(
            from in 0_u64..5_000, count in 1_u64..60, width in 1_usize..6, port in 1_u16..,
        ) {
            let list = format!("n[{from:0width$}-{}]:{port},[fd00::{port:x}]", from + count - 1);
            let workers = parse(&list).unwrap();
            prop_assert_eq!(workers.len() as u64, count + 1);
            prop_assert_eq!(parse(&show(&workers)).unwrap(), workers);
        }
    }
}
