//! What is doubtful and what went wrong, grouped: the same trouble of many points or nodes is one
//! line.

use std::collections::{BTreeMap, BTreeSet};

use iofleet_shared::units;

use crate::{
    record::{CampaignRecord, Damage, ErrorKind, Mark, NodeStatus, PointRecord, PointStatus},
    report::{plural, point_list},
};

/// One line a code, in the order in which they first appear; the points with the worst value first,
/// and the words of the very worst. Marks that only repeat the errors and lost nodes, which have
/// lines of their own, are left out.
pub(super) fn doubts(campaign: &CampaignRecord) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<(u32, &Mark)>)> = Vec::new();
    for point in &campaign.points {
        for mark in point.marks.iter().filter(|mark| !told_elsewhere(point, mark)) {
            match groups.iter_mut().find(|(code, _)| *code == mark.code) {
                Some((_, marks)) => marks.push((point.index, mark)),
                None => groups.push((&mark.code, vec![(point.index, mark)])),
            }
        }
    }
    groups.into_iter().map(|(code, marks)| doubt(code, marks)).collect()
}

/// Failed operations by operation, call and errno: one line a kind, whichever nodes had it.
pub(super) fn errors(campaign: &CampaignRecord) -> Vec<String> {
    let mut groups: BTreeMap<(&str, &str, i32), Errors<'_>> = BTreeMap::new();
    for point in &campaign.points {
        for kind in &point.error_kinds {
            let key = (kind.op.as_str(), kind.call.as_str(), kind.errno);
            groups.entry(key).or_insert_with(|| Errors::new(kind)).add(point.index, kind);
        }
    }
    groups.values().map(Errors::line).collect()
}

/// Damaged units by what is wrong with them: one line a kind, whichever nodes read them.
pub(super) fn damages(campaign: &CampaignRecord) -> Vec<String> {
    let mut groups: Vec<(&Damage, u64, BTreeSet<&str>, Vec<u32>)> = Vec::new();
    for point in &campaign.points {
        for damage in point.verification.iter().flat_map(|found| &found.damages) {
            let known = groups.iter().position(|(first, ..)| first.kind == damage.kind);
            let place = known.unwrap_or(groups.len());
            if known.is_none() {
                groups.push((damage, 0, BTreeSet::new(), Vec::new()));
            }
            let (_, units, nodes, points) = &mut groups[place];
            *units += damage.units;
            nodes.insert(&damage.node);
            if !points.contains(&point.index) {
                points.push(point.index);
            }
        }
    }
    let lines = groups.iter().map(|(first, units, nodes, points)| {
        let Damage { node, kind, file, offset, found, .. } = first;
        format!(
            "{kind}: {} of 4 KiB read on {} in {}; first on {node} in {file} at offset {}: {found}.",
            plural(*units, "unit"),
            place(nodes),
            point_list(points),
            units::format_count(*offset),
        )
    });
    lines.collect()
}

/// What nodes say of how their engines ran: the same remark of many is one line.
pub(super) fn remarks(campaign: &CampaignRecord) -> Vec<String> {
    let mut groups: Vec<(&str, BTreeSet<&str>, Vec<u32>)> = Vec::new();
    for point in &campaign.points {
        for (node, text) in
            point.nodes.iter().flat_map(|node| node.remarks.iter().map(move |text| (node, text)))
        {
            let known = groups.iter().position(|(known, ..)| known == text);
            let place = known.unwrap_or(groups.len());
            if known.is_none() {
                groups.push((text, BTreeSet::new(), Vec::new()));
            }
            let (_, nodes, points) = &mut groups[place];
            nodes.insert(&node.node);
            if !points.contains(&point.index) {
                points.push(point.index);
            }
        }
    }
    let lines = groups.iter().map(|(text, nodes, points)| {
        let text = text.trim_end_matches('.');
        format!("{text} ({}, {}).", place(nodes), point_list(points))
    });
    lines.collect()
}

/// The name of a single node, or how many there are.
fn place(nodes: &BTreeSet<&str>) -> String {
    match nodes.first() {
        Some(only) if nodes.len() == 1 => (*only).to_owned(),
        _ => format!("{} nodes", nodes.len()),
    }
}

/// Lost nodes by the point since which they are lost, and by that in which they were back.
pub(super) fn lost(campaign: &CampaignRecord) -> Vec<String> {
    let points = &campaign.points;
    let mut spells: BTreeMap<(usize, Option<usize>), Vec<&str>> = BTreeMap::new();
    let mut seen: BTreeSet<(&str, Option<usize>)> = BTreeSet::new();
    for (place, point) in points.iter().enumerate() {
        for name in &point.census.lost {
            let back = back(points, place, name);
            // The same spell is named once, with the point in which it began.
            if seen.insert((name, back)) {
                spells.entry((place, back)).or_default().push(name);
            }
        }
    }
    let lines = spells.iter().map(|((since, back), names)| {
        let back = back
            .map_or_else(String::new, |place| format!(", back in point {}", points[place].index));
        format!("{} since point {}{back}.", names.join(", "), points[*since].index)
    });
    lines.collect()
}

/// Why points are not `ok`: the same reason of many is one line.
pub(super) fn reasons(points: &[PointRecord]) -> Vec<String> {
    let mut groups: Vec<(PointStatus, &str, Vec<u32>)> = Vec::new();
    for point in points.iter().filter(|point| point.status != PointStatus::Ok) {
        let why = point.why.as_deref().unwrap_or("no reason is recorded");
        let known =
            groups.iter_mut().find(|(status, text, _)| *status == point.status && *text == why);
        match known {
            Some((_, _, indexes)) => indexes.push(point.index),
            None => groups.push((point.status, why, vec![point.index])),
        }
    }
    let lines = groups.iter().map(|(status, why, indexes)| {
        format!("  {} ({}): {}.", status.word(), point_list(indexes), why.trim_end_matches('.'))
    });
    lines.collect()
}

fn told_elsewhere(point: &PointRecord, mark: &Mark) -> bool {
    match mark.code.as_str() {
        "errors" => !point.error_kinds.is_empty(),
        "damaged" => point.damaged_units() > 0,
        "partial" => !point.census.lost.is_empty(),
        _ => false,
    }
}

fn doubt(code: &str, mut marks: Vec<(u32, &Mark)>) -> String {
    marks.sort_by(|(_, one), (_, other)| badness(other).total_cmp(&badness(one)));
    let points: Vec<u32> = marks.iter().map(|(index, _)| *index).collect();
    let text = marks.first().map_or("", |(_, mark)| mark.text.as_str());
    let differ = marks.iter().any(|(_, mark)| mark.text != text);
    let order = if differ { ", worst first" } else { "" };
    format!("{code} ({}{order}): {}.", point_list(&points), text.trim_end_matches('.'))
}

/// How many times the limit was missed, on whichever side; the value itself without a limit.
fn badness(mark: &Mark) -> f64 {
    match (mark.value, mark.limit) {
        (None, _) => 0.0,
        (Some(value), None) => value,
        (Some(value), Some(limit)) if limit <= 0.0 => value,
        (Some(value), Some(limit)) if value >= limit => value / limit,
        (Some(value), Some(limit)) => limit / value.max(f64::MIN_POSITIVE),
    }
}

struct Errors<'a> {
    first: &'a ErrorKind,
    count: u64,
    max_ns: u64,
    nodes: BTreeSet<&'a str>,
    points: Vec<u32>,
}

impl<'a> Errors<'a> {
    fn new(first: &'a ErrorKind) -> Self {
        Self { first, count: 0, max_ns: 0, nodes: BTreeSet::new(), points: Vec::new() }
    }

    fn add(&mut self, point: u32, kind: &'a ErrorKind) {
        self.count = self.count.saturating_add(kind.count);
        self.max_ns = self.max_ns.max(kind.max_ns);
        self.nodes.insert(&kind.node);
        if !self.points.contains(&point) {
            self.points.push(point);
        }
    }

    fn line(&self) -> String {
        let ErrorKind { node, op, call, text, file, offset, .. } = self.first;
        let call = if call == op { String::new() } else { format!(" ({call})") };
        let place = place(&self.nodes);
        format!(
            "{op}{call}: {text}: {} on {place} in {}; first on {node} in {file} at offset {}, \
             longest {}.",
            plural(self.count, "operation"),
            point_list(&self.points),
            units::format_count(*offset),
            units::format_duration_ns(self.max_ns),
        )
    }
}

/// Place of the first later point in which the node reported.
fn back(points: &[PointRecord], since: usize, name: &str) -> Option<usize> {
    let reported = |point: &PointRecord| {
        let mut nodes = point.nodes.iter();
        nodes.any(|node| node.node == name && node.status != NodeStatus::Lost)
    };
    let mut later = points.iter().enumerate().skip(since + 1);
    later.find(|(_, point)| reported(point)).map(|(place, _)| place)
}
