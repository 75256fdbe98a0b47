//! What bounds the result of a point: the first of eight verdicts that its numbers fit. Pure.
//!
//! A verdict goes by what the record of the point says, and by the points of the same stage with
//! other numbers of threads. Where a number is not known, what it would have told is not claimed and
//! is listed as missing.

use crate::{
    record::{Direction, Evidence, Finding, PointNode, PointRecord, PointStatus, Verdict},
    scenario::thresholds::Thresholds,
};

#[cfg(test)]
mod tests;

/// What else is known of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Known {
    /// What the storage side does without the network, bytes/s.
    pub storage_bytes_per_s: Option<f64>,
    /// The campaign still runs.
    pub running: bool,
}

/// Judges all points of a campaign.
pub fn judge_all(points: &mut [PointRecord], known: Known, thresholds: &Thresholds) {
    let verdicts: Vec<Option<Verdict>> = points
        .iter()
        .map(|point| {
            let ramp: Vec<&PointRecord> =
                points.iter().filter(|other| of_one_ramp(point, other)).collect();
            (point.status != PointStatus::Skipped)
                .then(|| Judge { point, ramp, known, limits: thresholds }.verdict())
        })
        .collect();
    for (point, verdict) in points.iter_mut().zip(verdicts) {
        point.verdict = verdict;
    }
}

/// Points that differ in their threads alone.
fn of_one_ramp(a: &PointRecord, b: &PointRecord) -> bool {
    let but_threads = |point: &PointRecord| {
        let swept = point.params.swept.iter();
        swept
            .filter(|swept| !swept.key.starts_with("threads"))
            .map(|swept| (swept.key.clone(), swept.value.clone()))
            .collect::<Vec<_>>()
    };
    a.stage == b.stage && a.repeat == b.repeat && but_threads(a) == but_threads(b)
}

struct Judge<'a> {
    point: &'a PointRecord,
    ramp: Vec<&'a PointRecord>,
    known: Known,
    limits: &'a Thresholds,
}

impl Judge<'_> {
    fn verdict(&self) -> Verdict {
        let rules: [fn(&Self) -> Option<Finding>; 8] = [
            Self::invalid,
            Self::cache_served,
            Self::cache_absorbed,
            Self::straggler,
            Self::network_bound,
            Self::client_bound,
            Self::server_bound,
            Self::unsaturated,
        ];
        let mut findings: Vec<Finding> = rules.iter().filter_map(|rule| rule(self)).collect();
        let missing = self.missing();
        if findings.is_empty() {
            let text = "nothing that was measured says what bounds it".to_owned();
            findings.push(Finding { code: "undetermined".to_owned(), text, evidence: Vec::new() });
        }
        let Finding { code, text, evidence } = findings.remove(0);
        let provisional = self.known.running;
        Verdict { code, text, evidence, also: findings, missing, provisional }
    }

    fn invalid(&self) -> Option<Finding> {
        let mut why = Vec::new();
        if self.point.status != PointStatus::Ok {
            why.push(format!("the point is {}", self.point.status.word()));
        }
        let errors = self.point.error_kinds.iter().map(|kind| kind.count).sum::<u64>();
        let errors = errors.max(self.point.errors);
        if errors > 0 {
            why.push(format!("{errors} operations failed"));
        }
        if self.point.damaged_units() > 0 {
            why.push("what was read is not what was written".to_owned());
        }
        if rate(self.point).is_none() {
            why.push("there is no figure".to_owned());
        }
        let no_io = self.point.marks.iter().any(|mark| mark.code == "no-io");
        if self.point.marks.iter().any(|mark| mark.code == "holes") {
            why.push("files have holes where they were read".to_owned());
        }
        if no_io {
            why.push("there was no I/O".to_owned());
        }
        (!why.is_empty()).then(|| finding("invalid", why.join("; "), Vec::new()))
    }

    /// Payload that did not cross the links, where those are not doubtful.
    fn ways(&self) -> impl Iterator<Item = &Direction> {
        let doubtful = self.point.marks.iter().any(|mark| mark.code == "links-doubtful");
        self.point.network.directions.iter().filter(move |_| !doubtful)
    }

    fn cache_served(&self) -> Option<Finding> {
        let way = self.ways().find(|way| way.op == "read")?;
        let share = way.wire_per_payload? / way.expected_wire_per_payload;
        (share < self.limits.served).then(|| {
            let text =
                format!("caches answered: of each byte read {share:.2} crossed the clients' links");
            finding("cache-served", text, vec![evidence("wire/payload", share, self.limits.served)])
        })
    }

    fn cache_absorbed(&self) -> Option<Finding> {
        let way = self.ways().find(|way| way.op == "write")?;
        let buffered = !self.point.params.direct && !self.point.params.options.dsync;
        let share = way.wire_per_payload_at_end? / way.expected_wire_per_payload;
        (buffered && share < self.limits.absorbed).then(|| {
            let text = format!(
                "caches took it: of each byte written {share:.2} had crossed the clients' links \
                 when the last thread ended"
            );
            let value = evidence("wire/payload at the last end", share, self.limits.absorbed);
            finding("cache-absorbed", text, vec![value])
        })
    }

    fn straggler(&self) -> Option<Finding> {
        let per_thread: Vec<(&PointNode, f64)> = self
            .point
            .nodes
            .iter()
            .filter_map(|node| Some((node, self.rate_per_thread(node)?)))
            .collect();
        let mut rates: Vec<f64> = per_thread.iter().map(|(_, rate)| *rate).collect();
        rates.sort_by(f64::total_cmp);
        // Of two nodes nobody knows which one is the odd one.
        if rates.len() < 3 {
            return None;
        }
        let median = f64::midpoint(rates[(rates.len() - 1) / 2], rates[rates.len() / 2]);
        let (node, slowest) = per_thread.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let share = slowest / median;
        (median > 0.0 && share < self.limits.straggler).then(|| {
            let text = format!(
                "{} does {share:.2} of the median node's rate per thread{}",
                node.node,
                self.why_slow(node)
            );
            finding(
                "straggler",
                text,
                vec![evidence("of the median", share, self.limits.straggler)],
            )
        })
    }

    fn rate_per_thread(&self, node: &PointNode) -> Option<f64> {
        let rate = if self.point.moves_data() { node.bandwidth } else { node.iops }?;
        let threads = self.point.threads.iter().filter(|thread| thread.node == node.node).count();
        (threads > 0).then(|| rate / to_f64(threads))
    }

    fn why_slow(&self, node: &PointNode) -> String {
        let mut why = Vec::new();
        if let Some(share) = node.link_share {
            let full = share / self.achievable() >= self.limits.network;
            let word = if full { "its link is full" } else { "its link is not full" };
            why.push(format!("{word} ({:.0} %)", share * 100.0));
        }
        if let Some(core) = node.busiest_core_share {
            let full = core >= self.limits.core;
            let word = if full { "a core of it is busy" } else { "no core of it is full" };
            why.push(format!("{word} ({:.0} %)", core * 100.0));
        }
        if why.is_empty() { String::new() } else { format!("; {}", why.join(", ")) }
    }

    /// Share of a link's label that can be reached, the least of the point's directions.
    fn achievable(&self) -> f64 {
        let shares = self.point.network.directions.iter().map(|way| way.achievable_share);
        shares.fold(1.0, f64::min)
    }

    fn network_bound(&self) -> Option<Finding> {
        let achieved = |way: &&Direction| Some(way.wire_share? / way.achievable_share);
        let fullest = self.ways().filter_map(|way| Some((way, achieved(&way)?)));
        let (way, share) = fullest.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let limit = way.limit_bytes_per_s?;
        let storage = self.known.storage_bytes_per_s.map(|storage| storage / limit);
        let more = storage.filter(|storage| *storage >= self.limits.storage);
        let mut evidence_of =
            vec![evidence("share of the achievable rate", share, self.limits.network)];
        if share < self.limits.network {
            let on_plateau = self.ramp.len() > 1 && self.on_plateau();
            let storage = more.filter(|_| on_plateau && share >= self.limits.plateau)?;
            evidence_of[0].limit = self.limits.plateau;
            evidence_of.push(evidence("storage side / limit", storage, self.limits.storage));
        }
        let side = match way.limit_side.as_deref() {
            Some("storage") => "the storage side's links",
            Some("fabric") => "the fabric between clients and storage",
            _ => "the clients' links",
        };
        let text = format!(
            "{side} carry {:.0} % of what they can ({} {}, {:.1} % of {:.2} MB/s by label)",
            share * 100.0,
            way.op,
            way.direction,
            share * way.achievable_share * 100.0,
            limit / 1e6
        );
        Some(finding("network-bound", text, evidence_of))
    }

    fn on_plateau(&self) -> bool {
        let greatest = self.ramp.iter().filter_map(|point| rate(point)).fold(0.0, f64::max);
        rate(self.point).is_some_and(|rate| rate >= greatest * self.limits.on_plateau)
    }

    fn client_bound(&self) -> Option<Finding> {
        let limits = self.limits;
        let greatest = |of: fn(&PointNode) -> Option<f64>| {
            let nodes = self.point.nodes.iter().filter_map(|node| Some((node, of(node)?)));
            nodes.max_by(|a, b| a.1.total_cmp(&b.1))
        };
        let mut why = Vec::new();
        let mut found = Vec::new();
        if let Some((node, core)) = greatest(|node| node.busiest_core_share)
            && core >= limits.core
        {
            why.push(format!(
                "a core of {} is busy for {:.0} % of the time",
                node.node,
                core * 100.0
            ));
            found.push(evidence("busiest core", core, limits.core));
        }
        if let Some((node, delay)) = greatest(|node| node.run_delay_share)
            && delay >= limits.run_delay
        {
            why.push(format!(
                "I/O threads of {} wait for a CPU for {:.0} % of their time",
                node.node,
                delay * 100.0
            ));
            found.push(evidence("run-queue delay", delay, limits.run_delay));
        }
        let paced = self.point.offered.is_some() || self.point.params.think_ns > 0;
        if let Some(busy) = self.point.busy_share.filter(|busy| !paced && *busy < limits.busy) {
            why.push(format!("threads are in an operation for {:.0} % of the time", busy * 100.0));
            found.push(evidence("busy share", busy, limits.busy));
        }
        (!why.is_empty()).then(|| finding("client-bound", why.join("; "), found))
    }

    /// Half the threads again brought nothing but latency, and the clients' links have room.
    fn server_bound(&self) -> Option<Finding> {
        let limits = self.limits;
        let fewer = self.with_at_most(2.0 / 3.0)?;
        let gain = rate(self.point)? / rate(fewer)? - 1.0;
        let latency = latency(self.point)? / latency(fewer)?;
        let links = self.client_links()?;
        let bound = gain < limits.gain && latency >= limits.latency && links < limits.links;
        bound.then(|| {
            let threads = |point: &PointRecord| point.params.threads;
            let (who, theirs) = self.servers();
            let text = format!(
                "{who}: {} threads instead of {} bring {:+.1} % and {latency:.1} \
                 times the latency, and the clients' links carry {:.0} % of what they can{theirs}",
                threads(self.point),
                threads(fewer),
                gain * 100.0,
                links * 100.0
            );
            let found = vec![
                evidence("gain", gain, limits.gain),
                evidence("latency growth", latency, limits.latency),
                evidence("clients' links", links, limits.links),
            ];
            finding("server-bound", text, found)
        })
    }

    /// Who it is beyond the clients' links, as far as observers tell.
    fn servers(&self) -> (&'static str, String) {
        let share = |way: &Direction| {
            let limit = way.storage_limit_bytes_per_s?;
            Some(way.storage_wire_bytes_per_s? / limit / way.achievable_share)
        };
        let greatest = self.ways().filter_map(share).reduce(f64::max);
        match greatest.filter(|share| *share < self.limits.links) {
            Some(share) => ("servers", format!(", those of the servers {:.0} %", share * 100.0)),
            None => ("servers or their network", String::new()),
        }
    }

    /// Share of what the clients' own links can carry.
    fn client_links(&self) -> Option<f64> {
        let shares = self.ways().map(|way| {
            let own = way.client_limit_bytes_per_s?;
            Some(way.wire_bytes_per_s? / own / way.achievable_share)
        });
        shares.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
    }

    fn unsaturated(&self) -> Option<Finding> {
        let fewer = self.with_at_most(0.5)?;
        let gain = rate(self.point)? / rate(fewer)? - 1.0;
        (gain >= self.limits.doubling).then(|| {
            let text = format!(
                "{} threads instead of {} bring {:+.0} %: more may bring more",
                self.point.params.threads,
                fewer.params.threads,
                gain * 100.0
            );
            finding("unsaturated", text, vec![evidence("gain", gain, self.limits.doubling)])
        })
    }

    /// The point of the ramp with the most threads that are at most this share of this one's.
    fn with_at_most(&self, share: f64) -> Option<&PointRecord> {
        let most = f64::from(self.point.params.threads) * share;
        let fewer = self.ramp.iter().filter(|point| f64::from(point.params.threads) <= most);
        let sound = fewer.filter(|point| point.status == PointStatus::Ok);
        sound.max_by_key(|point| point.params.threads).copied()
    }

    fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        let mut lacks = |is: bool, what: &str| {
            if is {
                missing.push(what.to_owned());
            }
        };
        let ways = &self.point.network.directions;
        let doubtful = self.ways().next().is_none() && !ways.is_empty();
        lacks(doubtful, "links that explain the payload");
        lacks(
            ways.iter().any(|way| way.wire_bytes_per_s.is_none()),
            "wire bytes of the clients' links",
        );
        lacks(ways.iter().any(|way| way.limit_bytes_per_s.is_none()), "the network's limit");
        lacks(self.known.storage_bytes_per_s.is_none(), "what the storage side does by itself");
        lacks(self.point.nodes.iter().any(|n| n.busiest_core_share.is_none()), "time of the CPUs");
        lacks(self.with_at_most(2.0 / 3.0).is_none(), "a point with fewer threads");
        missing
    }
}

/// The headline, in what the point counts.
fn rate(point: &PointRecord) -> Option<f64> {
    let headline = point.headline?;
    if point.moves_data() { point.bandwidth.of(headline) } else { point.iops.of(headline) }
}

fn latency(point: &PointRecord) -> Option<f64> {
    Some(point.latency_ns.service.as_ref()?.mean)
}

fn finding(code: &str, text: String, evidence: Vec<Evidence>) -> Finding {
    Finding { code: code.to_owned(), text, evidence }
}

fn evidence(name: &str, value: f64, limit: f64) -> Evidence {
    Evidence { name: name.to_owned(), value, limit }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of threads are small")]
fn to_f64(value: usize) -> f64 {
    value as f64
}
