//! What a campaign says in sentences: its best results, what is doubtful about them, what went
//! wrong, and what lies behind the headline.

use std::fmt::Write as _;

use iofleet_shared::units;

use super::{format_rate, headline, plural, point_list, rate_of, unit_of};
use crate::record::{
    CampaignRecord, CampaignStatus, Headline, Params, PointRecord, PointStatus, Repetition,
    RequirementResult, Scaling, Unit,
};

mod figures;
mod trouble;

/// Headlines by stage, damaged data, doubts, errors, lost nodes, remarks of the nodes, how the campaign stands where it is not
/// complete, and the five figures of each stage's best point. Every line is ended by a newline;
/// parts without anything to say are left out. `binary` shows GiB/s instead of GB/s.
#[must_use]
pub fn summary(campaign: &CampaignRecord, binary: bool) -> String {
    let stages = stages(campaign);
    let headlines: Vec<String> = stages.iter().map(|stage| stage.sentence(binary)).collect();
    let parts = [
        ("", headlines),
        ("What bounds the best points:", verdicts(&stages)),
        ("Damaged data:", trouble::damages(campaign)),
        ("Doubts:", trouble::doubts(campaign)),
        ("Errors:", trouble::errors(campaign)),
        ("Lost nodes:", trouble::lost(campaign)),
        ("Remarks:", trouble::remarks(campaign)),
        ("", status(campaign)),
        ("Response over load:", load_curves(campaign)),
        ("Scaling:", scaling(campaign)),
        ("Demands:", demands(campaign)),
        ("Figures of the best points:", figures::lines(&stages, binary)),
    ];
    let parts = parts.into_iter().filter(|(_, lines)| !lines.is_empty());
    let texts: Vec<String> = parts.map(|(title, lines)| part(title, &lines)).collect();
    texts.join("\n")
}

/// `4 nodes`, or `3 of 4 nodes` where fewer took part than were to.
fn took_part(reported: u64, planned: u64, what: &str) -> String {
    if reported == planned {
        plural(planned, what)
    } else {
        format!("{reported} of {}", plural(planned, what))
    }
}

/// The share of the network's limit, and what crossed the wire, where they are known.
fn limit(point: &PointRecord, binary: bool) -> String {
    let network = &point.network;
    let mut text = String::new();
    if let Some((limit, share)) = network.limit_bytes_per_s.zip(network.payload_share) {
        let limit = units::format_rate(limit, binary);
        let _ = write!(text, ", {:.1} % of the network's limit of {limit}", share * 100.0);
        if let Some(wire) = network.wire_share {
            let _ = write!(text, " ({:.1} % of it on the wire)", wire * 100.0);
        }
    }
    if let Some(ratio) = network.wire_per_payload {
        let _ = write!(text, ", {ratio:.3} bytes on the wire for each of payload");
    }
    text
}

/// Whether each was met.
fn demands(campaign: &CampaignRecord) -> Vec<String> {
    let line = |demand: &RequirementResult| {
        let word = if demand.passed { "passed" } else { "FAILED" };
        let share = demand.value.map_or_else(
            || "no sound point says".to_owned(),
            |value| format!("{:.1} % of it", value / demand.limit * 100.0),
        );
        format!("{word}: {} ({share})", demand.text)
    };
    campaign.requirements.iter().map(line).collect()
}

/// Knee and fit of each ramp.
fn scaling(campaign: &CampaignRecord) -> Vec<String> {
    let line = |ramp: &Scaling| {
        let swept = ramp.swept.iter().map(|swept| format!(" {} {}", swept.key, swept.value));
        let mut line = format!("{}{}: ", ramp.stage, swept.collect::<String>());
        if let Some(knee) = ramp.knee_threads {
            let _ = write!(line, "95 % of its greatest rate from {knee} threads");
        }
        match (&ramp.fit, &ramp.no_fit) {
            (Some(fit), _) => {
                let _ = write!(
                    line,
                    "; contention {:.4}, coherency {:.6} (R2 {:.3})",
                    fit.contention, fit.coherency, fit.r2
                );
            }
            (None, Some(why)) => {
                let _ = write!(line, "; no fit: {why}");
            }
            (None, None) => {}
        }
        line
    };
    campaign.scaling.iter().map(line).collect()
}

/// The verdicts of the stages' best points.
fn verdicts(stages: &[Stage<'_>]) -> Vec<String> {
    let best = stages.iter().filter_map(|stage| Some((stage.name, stage.best.as_ref()?.point)));
    let line = |(name, point): (&str, &PointRecord)| {
        let verdict = point.verdict.as_ref()?;
        let mut line = format!("{name}: {}: {}", verdict.code, verdict.text);
        if !verdict.also.is_empty() {
            let also: Vec<&str> = verdict.also.iter().map(|also| also.code.as_str()).collect();
            let _ = write!(line, " (also {})", also.join(", "));
        }
        if verdict.code == "undetermined" && !verdict.missing.is_empty() {
            let _ = write!(line, "; not known: {}", verdict.missing.join(", "));
        }
        Some(line)
    };
    best.filter_map(line).collect()
}

/// The points of one stage, and the best of them.
struct Stage<'a> {
    name: &'a str,
    points: Vec<&'a PointRecord>,
    best: Option<Best<'a>>,
}

struct Best<'a> {
    /// The best one of its repetitions.
    point: &'a PointRecord,
    /// Mean of the repetitions, or the point's own headline.
    rate: f64,
    unit: Unit,
    repetition: Option<&'a Repetition>,
}

/// In the order in which they first ran.
fn stages(campaign: &CampaignRecord) -> Vec<Stage<'_>> {
    let mut stages: Vec<Stage<'_>> = Vec::new();
    for point in &campaign.points {
        match stages.iter_mut().find(|stage| stage.name == point.stage) {
            Some(stage) => stage.points.push(point),
            None => stages.push(Stage { name: &point.stage, points: vec![point], best: None }),
        }
    }
    for stage in &mut stages {
        stage.best = best(campaign, &stage.points);
    }
    stages
}

/// Sound points go before partial ones, whatever those reached; of repeated points the mean counts,
/// for the greatest of many is the luckiest.
fn best<'a>(campaign: &'a CampaignRecord, points: &[&'a PointRecord]) -> Option<Best<'a>> {
    let candidates = points.iter().filter_map(|point| {
        let own = rate_of(point)?;
        let mut repetitions = campaign.repetitions.iter();
        let repetition = repetitions.find(|repetition| repetition.points.contains(&point.index));
        let rate = repetition.map_or(own, |repetition| repetition.mean);
        Some((own, Best { point, rate, unit: unit_of(point), repetition }))
    });
    let rank =
        |(own, best): &(f64, Best<'_>)| (best.point.status == PointStatus::Ok, best.rate, *own);
    let greatest = candidates.reduce(|kept, next| {
        let (kept_rank, next_rank) = (rank(&kept), rank(&next));
        if next_rank.partial_cmp(&kept_rank).is_some_and(std::cmp::Ordering::is_gt) {
            next
        } else {
            kept
        }
    });
    greatest.map(|(_, best)| best)
}

impl Stage<'_> {
    fn sentence(&self, binary: bool) -> String {
        let points = self.census();
        let Some(best) = &self.best else {
            return format!("{}: nothing was measured; {points}.", self.name);
        };
        let up_to = if self.points.len() > 1 { "up to " } else { "" };
        let rate = format_rate(best.rate, best.unit, binary);
        let spread = best.repetition.map_or_else(String::new, |repetition| {
            format!(" ± {}", format_rate(repetition.ci95, repetition.unit, binary))
        });
        let params = &best.point.params;
        format!(
            "{}: {up_to}{rate}{spread} at {} on {} ({}){}; {points}.",
            self.name,
            plural(params.threads.into(), "thread"),
            took_part(best.point.census.reported.into(), params.nodes.into(), "node"),
            conditions(best),
            limit(best.point, binary),
        )
    }

    /// `5 points`, and how many of them are not `ok`.
    fn census(&self) -> String {
        let others = [PointStatus::Partial, PointStatus::Failed, PointStatus::Skipped];
        let counts: Vec<String> = others
            .iter()
            .map(|status| (self.points.iter().filter(|point| point.status == *status), status))
            .map(|(points, status)| (points.count(), status.word()))
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        let points = plural(self.points.len() as u64, "point");
        if counts.is_empty() { points } else { format!("{points}, {}", counts.join(", ")) }
    }
}

/// What the bandwidth is, and under which conditions it was reached.
fn conditions(best: &Best<'_>) -> String {
    let params = &best.point.params;
    let mut parts = Vec::new();
    if let Some(repetition) = best.repetition {
        let count = repetition.points.len();
        parts.push(format!("mean of {count} repetitions with its 95 % confidence interval"));
    }
    match best.repetition.map(|repetition| repetition.headline).or_else(|| headline(best.point)) {
        Some(Headline::Common) => parts.push("common window".to_owned()),
        Some(Headline::Span) => parts.push("span from first begin to last end".to_owned()),
        None => {}
    }
    if best.point.status == PointStatus::Partial {
        parts.push("a partial point".to_owned());
    }
    parts.extend(mix(params));
    if best.unit == Unit::Bytes {
        parts.push(blocks(params));
        parts.push(match (params.direct, &params.fsync) {
            (true, _) => "direct".to_owned(),
            (false, Some(fsync)) => format!("buffered with fsync = {fsync}"),
            (false, None) => "buffered".to_owned(),
        });
    }
    if params.engine != "sync" {
        parts.push(params.engine.clone());
    }
    if params.depth > 1 {
        parts.push(format!("{} in flight per thread", params.depth));
    }
    if let Some(rate) = params.rate {
        parts.push(load(best.point, rate.per_s));
    }
    parts.push(params.layout.replace('-', " "));
    if best
        .point
        .verification
        .as_ref()
        .is_some_and(|found| found.checked && found.damages.is_empty())
    {
        parts.push("verified without damage".to_owned());
    }
    // These are told already.
    let told = [
        "threads",
        "threads_per_node",
        "block",
        "direct",
        "fsync",
        "layout",
        "depth",
        "rate",
        "engine",
    ];
    let others = params.swept.iter().filter(|swept| !told.contains(&swept.key.as_str()));
    parts.extend(others.map(|swept| format!("{} = {}", swept.key, swept.value)));
    parts.join(", ")
}

/// What was offered, how much of it was done, and what that did to response times.
fn load(point: &PointRecord, per_s: f64) -> String {
    let mut text = format!("{} offered", units::format_ops(per_s));
    let Some(offered) = point.offered else { return text };
    if let Some(achieved) = offered.achieved_per_s {
        let _ = write!(text, ", {:.1} % of it achieved", achieved / per_s * 100.0);
    }
    if offered.not_issued > 0 {
        let _ =
            write!(text, ", {} operations never issued", units::format_count(offered.not_issued));
    }
    let response = point.latency_ns.response.as_ref();
    if let Some(p99) = response.and_then(|response| response.p99) {
        let _ = write!(text, ", response p99 {}", units::format_duration_ns(p99));
    }
    text
}

/// `1 write to 3 read`, where there is more than one kind of operation.
fn mix(params: &Params) -> Option<String> {
    let kinds = params.ops.iter().map(|kind| format!("{} {}", kind.weight, kind.op));
    (params.ops.len() > 1).then(|| kinds.collect::<Vec<_>>().join(" to "))
}

fn blocks(params: &Params) -> String {
    let greatest = params.blocks.iter().map(|size| size.bytes).max();
    let least = units::format_size(params.block_bytes);
    match greatest.filter(|greatest| *greatest > params.block_bytes) {
        Some(greatest) => format!("blocks of {least} to {}", units::format_size(greatest)),
        None => format!("{least} blocks"),
    }
}

fn load_curves(campaign: &CampaignRecord) -> Vec<String> {
    let lines = campaign.load_curves.iter().map(|curve| {
        let ort = units::format_duration_ns(nearest(curve.ort_ns));
        format!("{}: overall response time {ort} ({}).", curve.stage, point_list(&curve.points))
    });
    lines.collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time, rounded to be shown"
)]
fn nearest(ns: f64) -> u64 {
    ns.round() as u64
}

/// How the campaign stands, and the reasons of points that are not `ok`.
fn status(campaign: &CampaignRecord) -> Vec<String> {
    let points = &campaign.points;
    let count = plural(points.len() as u64, "point");
    let flawed = points.iter().filter(|point| point.status != PointStatus::Ok).count();
    let sentence = match campaign.campaign.status {
        CampaignStatus::Complete => return Vec::new(),
        CampaignStatus::Running => format!(
            "Not complete: it still runs, or its coordinator died before the end; {count} so far"
        ),
        CampaignStatus::Partial => format!("Partial: {flawed} of {count} did not come out whole"),
        CampaignStatus::Interrupted => format!("Interrupted after {count}"),
    };
    let message = campaign.campaign.message.as_deref().map(|text| text.trim_end_matches('.'));
    // The sentence says so already.
    let message = message.filter(|text| *text != "interrupted");
    let message = message.map_or_else(String::new, |text| format!(": {text}"));
    let mut lines = vec![format!("{sentence}{message}.")];
    lines.extend(trouble::reasons(points));
    lines
}

fn part(title: &str, lines: &[String]) -> String {
    let indent = if title.is_empty() { "" } else { "  " };
    let mut text = if title.is_empty() { String::new() } else { format!("{title}\n") };
    for line in lines {
        text.push_str(indent);
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
