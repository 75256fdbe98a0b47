//! Records as rows, and back.

use std::collections::BTreeMap;

use iofleet_shared::work::OpKind;
use rusqlite::{Connection, Row, Transaction, params};
use serde::{
    Deserialize,
    de::{IntoDeserializer, value::StrDeserializer},
};

use super::{CampaignLine, blob, tables};
use crate::record::{
    CampaignRecord, Histogram, Interval, IntervalOp, IntervalPhase, LatencyKind, PointRecord,
};

/// In the column `op`: all kinds of operation together.
const ALL: &str = "all";

/// Stores a campaign that is not there yet.
pub(super) fn insert_campaign(
    transaction: &Transaction<'_>,
    record: &CampaignRecord,
) -> rusqlite::Result<()> {
    let campaign = &record.campaign;
    transaction.execute(
        "INSERT INTO campaigns (id, name, scenario_id, started, ended, status, version, document)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            campaign.id,
            campaign.name,
            campaign.scenario_id,
            campaign.started,
            campaign.ended,
            campaign.status.word(),
            record.schema,
            campaign_document(record)?,
        ],
    )?;
    Ok(())
}

/// Replaces a campaign's row; false if there is none.
pub(super) fn update_campaign(
    transaction: &Transaction<'_>,
    record: &CampaignRecord,
) -> rusqlite::Result<bool> {
    let campaign = &record.campaign;
    let changed = transaction.execute(
        "UPDATE campaigns SET ended = ?2, status = ?3, document = ?4 WHERE id = ?1",
        params![campaign.id, campaign.ended, campaign.status.word(), campaign_document(record)?],
    )?;
    Ok(changed == 1)
}

/// Whether a campaign is there.
pub(super) fn has_campaign(transaction: &Transaction<'_>, id: &str) -> rusqlite::Result<bool> {
    transaction.query_row("SELECT count(*) FROM campaigns WHERE id = ?1", [id], |row| {
        row.get::<_, i64>(0).map(|count| count > 0)
    })
}

/// Stores a point and its intervals, in the place of an earlier one of its index.
pub(super) fn put_point(
    transaction: &Transaction<'_>,
    campaign: &str,
    point: &PointRecord,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO points
               (campaign, idx, stage, op, threads, nodes, repeat, status, headline, document)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (campaign, idx) DO UPDATE SET
               stage = excluded.stage, op = excluded.op, threads = excluded.threads,
               nodes = excluded.nodes, repeat = excluded.repeat, status = excluded.status,
               headline = excluded.headline, document = excluded.document",
        )?
        .execute(params![
            campaign,
            point.index,
            point.stage,
            point.op,
            point.params.threads,
            point.params.nodes,
            point.repeat,
            point.status.word(),
            // Of operations on names no bandwidth is known.
            point.headline.filter(|_| point.moves_data()).and_then(|h| point.bandwidth.of(h)),
            json(&PointRecord { intervals: Vec::new(), ..point.clone() })?,
        ])?;
    transaction.execute(
        "DELETE FROM intervals WHERE campaign = ?1 AND point = ?2",
        params![campaign, point.index],
    )?;
    put_intervals(transaction, campaign, point)
}

/// Stores anew what a point's document says, its intervals apart.
pub(super) fn update_document(
    transaction: &Transaction<'_>,
    campaign: &str,
    point: &PointRecord,
) -> rusqlite::Result<()> {
    transaction.execute(
        "UPDATE points SET document = ?3 WHERE campaign = ?1 AND idx = ?2",
        params![
            campaign,
            point.index,
            json(&PointRecord { intervals: Vec::new(), ..point.clone() })?
        ],
    )?;
    Ok(())
}

fn put_intervals(
    transaction: &Transaction<'_>,
    campaign: &str,
    point: &PointRecord,
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO intervals
           (campaign, point, k, op, start_s, seconds, phase, bytes, ops, errors, latency, response)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    for interval in &point.intervals {
        let all = IntervalOp {
            op: ALL.to_owned(),
            bytes: interval.bytes,
            ops: interval.ops,
            errors: interval.errors,
            latency_ns: interval.latency_ns,
            response_ns: interval.response_ns,
        };
        for row in std::iter::once(&all).chain(&interval.by_op) {
            insert.execute(params![
                campaign,
                point.index,
                interval.k,
                row.op,
                interval.start_s,
                interval.seconds,
                interval.phase.word(),
                signed(row.bytes)?,
                signed(row.ops)?,
                signed(row.errors)?,
                row.latency_ns.as_ref().map(json).transpose()?,
                row.response_ns.as_ref().map(json).transpose()?,
            ])?;
        }
    }
    Ok(())
}

/// Stores a point's histograms in the place of earlier ones.
pub(super) fn put_histograms(
    transaction: &Transaction<'_>,
    campaign: &str,
    point: u32,
    histograms: &[Histogram],
) -> rusqlite::Result<()> {
    transaction.execute(
        "DELETE FROM histograms WHERE campaign = ?1 AND point = ?2",
        params![campaign, point],
    )?;
    for Histogram { op, kind, latency } in histograms {
        transaction.execute(
            "INSERT INTO histograms (campaign, point, op, kind, blob) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                campaign,
                point,
                op.map_or(ALL, OpKind::name),
                kind.word(),
                blob::encode(latency)
            ],
        )?;
    }
    Ok(())
}

/// Kind of operation (none: all), kind of latency, blob.
type HistogramRow = (Option<OpKind>, LatencyKind, Vec<u8>);

/// A point's histograms, those of all kinds first.
pub(super) fn histograms(
    transaction: &Transaction<'_>,
    campaign: &str,
    point: u32,
) -> rusqlite::Result<Vec<HistogramRow>> {
    let columns =
        if tables::has_kinds(transaction)? { "op, kind" } else { "'all' AS op, 'service' AS kind" };
    let mut rows: Vec<HistogramRow> = transaction
        .prepare(&format!(
            "SELECT {columns}, blob FROM histograms WHERE campaign = ?1 AND point = ?2
             ORDER BY op, kind DESC"
        ))?
        .query_map(params![campaign, point], |row| {
            let (op, kind): (String, String) = (row.get(0)?, row.get(1)?);
            let response = kind == LatencyKind::Response.word();
            let kind = if response { LatencyKind::Response } else { LatencyKind::Service };
            Ok((op_of(&op), kind, row.get(2)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    rows.sort_by_key(|(op, _, _)| *op);
    Ok(rows)
}

fn op_of(name: &str) -> Option<OpKind> {
    OpKind::ALL.into_iter().find(|op| op.name() == name)
}

/// The id of the newest campaign, if there is one.
pub(super) fn newest(transaction: &Transaction<'_>) -> rusqlite::Result<Vec<String>> {
    transaction
        .prepare("SELECT id FROM campaigns ORDER BY started DESC, rowid DESC LIMIT 1")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// The campaign of this id, or else all whose ids begin so, newest first.
pub(super) fn ids_like(transaction: &Transaction<'_>, id: &str) -> rusqlite::Result<Vec<String>> {
    if has_campaign(transaction, id)? {
        return Ok(vec![id.to_owned()]);
    }
    transaction
        .prepare(
            "SELECT id FROM campaigns WHERE substr(id, 1, length(?1)) = ?1
             ORDER BY started DESC, rowid DESC",
        )?
        .query_map([id], |row| row.get(0))?
        .collect()
}

/// All campaigns, newest first.
pub(super) fn list(connection: &Connection) -> rusqlite::Result<Vec<CampaignLine>> {
    connection
        .prepare(
            "SELECT c.id, c.started, c.name, c.status, count(p.idx),
                    max(CASE WHEN p.status IN ('ok', 'partial') THEN p.headline END)
             FROM campaigns c LEFT JOIN points p ON p.campaign = c.id
             GROUP BY c.id ORDER BY c.started DESC, c.rowid DESC",
        )?
        .query_map([], |row| {
            Ok(CampaignLine {
                id: row.get(0)?,
                started: row.get(1)?,
                name: row.get(2)?,
                status: row.get(3)?,
                points: row.get::<_, i64>(4)?.unsigned_abs(),
                best: row.get(5)?,
            })
        })?
        .collect()
}

/// A stored campaign before its JSON is read.
pub(super) struct Texts {
    campaign: String,
    points: Vec<(u32, String)>,
    intervals: Vec<IntervalRow>,
}

struct IntervalRow {
    point: u32,
    phase: String,
    latency: Option<String>,
    response: Option<String>,
    op: String,
    /// Without phase and latencies.
    interval: Interval,
}

/// Reads a campaign's rows.
pub(super) fn texts(transaction: &Transaction<'_>, id: &str) -> rusqlite::Result<Texts> {
    let campaign =
        transaction
            .query_row("SELECT document FROM campaigns WHERE id = ?1", [id], |row| row.get(0))?;
    let points = transaction
        .prepare("SELECT idx, document FROM points WHERE campaign = ?1 ORDER BY ran")?
        .query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let columns =
        if tables::has_kinds(transaction)? { "op, response" } else { "'all' AS op, NULL" };
    let intervals = transaction
        .prepare(&format!(
            "SELECT point, phase, latency, k, start_s, seconds, bytes, ops, errors, {columns}
             FROM intervals WHERE campaign = ?1 ORDER BY point, k, op"
        ))?
        .query_map([id], interval_row)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Texts { campaign, points, intervals })
}

fn interval_row(row: &Row<'_>) -> rusqlite::Result<IntervalRow> {
    let counter = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
    Ok(IntervalRow {
        point: row.get(0)?,
        phase: row.get(1)?,
        latency: row.get(2)?,
        op: row.get(9)?,
        response: row.get(10)?,
        interval: Interval {
            k: row.get(3)?,
            start_s: row.get(4)?,
            seconds: row.get(5)?,
            phase: IntervalPhase::Measure,
            bytes: counter(6)?,
            ops: counter(7)?,
            errors: counter(8)?,
            latency_ns: None,
            response_ns: None,
            by_op: Vec::new(),
        },
    })
}

impl IntervalRow {
    /// The row of all kinds comes before those of each: its name is the first by the alphabet.
    fn add_to(self, intervals: &mut BTreeMap<u32, Vec<Interval>>) -> serde_json::Result<()> {
        let Self { point, phase, latency, response, op, interval } = self;
        let latency_ns = latency.as_deref().map(serde_json::from_str).transpose()?;
        let response_ns = response.as_deref().map(serde_json::from_str).transpose()?;
        let of_point = intervals.entry(point).or_default();
        match of_point.last_mut().filter(|last| last.k == interval.k) {
            Some(last) => last.by_op.push(IntervalOp {
                op,
                bytes: interval.bytes,
                ops: interval.ops,
                errors: interval.errors,
                latency_ns,
                response_ns,
            }),
            None => {
                let phase: StrDeserializer<'_, serde_json::Error> =
                    phase.as_str().into_deserializer();
                let phase = IntervalPhase::deserialize(phase)?;
                of_point.push(Interval { phase, latency_ns, response_ns, ..interval });
            }
        }
        Ok(())
    }
}

impl Texts {
    /// The record.
    pub(super) fn parse(self) -> serde_json::Result<CampaignRecord> {
        let mut record: CampaignRecord = serde_json::from_str(&self.campaign)?;
        let mut intervals = BTreeMap::<u32, Vec<Interval>>::new();
        for row in self.intervals {
            row.add_to(&mut intervals)?;
        }
        let order = |by_op: &IntervalOp| op_of(&by_op.op);
        for interval in intervals.values_mut().flatten() {
            interval.by_op.sort_by_key(order);
        }
        for (index, text) in self.points {
            let mut point: PointRecord = serde_json::from_str(&text)?;
            point.intervals = intervals.remove(&index).unwrap_or_default();
            record.points.push(point);
        }
        Ok(record)
    }
}

fn campaign_document(record: &CampaignRecord) -> rusqlite::Result<String> {
    let CampaignRecord {
        schema,
        tool,
        campaign,
        scenario,
        nodes,
        points: _,
        repetitions,
        load_curves,
        scaling,
        requirements,
    } = record;
    json(&CampaignRecord {
        schema: schema.clone(),
        tool: tool.clone(),
        campaign: campaign.clone(),
        scenario: scenario.clone(),
        nodes: nodes.clone(),
        points: Vec::new(),
        repetitions: repetitions.clone(),
        load_curves: load_curves.clone(),
        scaling: scaling.clone(),
        requirements: requirements.clone(),
    })
}

fn json(value: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// SQLite's integers are signed.
fn signed(count: u64) -> rusqlite::Result<i64> {
    i64::try_from(count).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}
