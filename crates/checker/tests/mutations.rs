//! Large histories that are serial by construction, and the same with a read or a write changed:
//! both get a verdict, and every edge of a witness exists.

use isolde_checker::{
    Builder, Edge, EdgeKind, History, Item, Level, Options, Status, Value, Verdict, Witness,
    check_with,
};

/// SplitMix64: the same histories on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

#[derive(Clone)]
enum Step {
    Write(usize, u64),
    /// What was observed: a whole list, or a register as a list of at most one value.
    Read(usize, Vec<u64>),
}

type Plan = Vec<(usize, Vec<Step>)>;

const ITEMS: usize = 60;
const SESSIONS: usize = 12;

/// Transactions run one at a time, each in some session.
fn serial(random: &mut Random, transactions: usize, lists: bool) -> Plan {
    let mut state: Vec<Vec<u64>> = vec![Vec::new(); ITEMS];
    let mut value = 0;
    let mut plan = Vec::new();
    for _ in 0..transactions {
        let mut steps = Vec::new();
        for _ in 0..1 + random.below(6) {
            let item = random.below(ITEMS);
            if random.below(2) == 0 {
                steps.push(Step::Read(item, state[item].clone()));
                continue;
            }
            value += 1;
            if lists {
                state[item].push(value);
            } else {
                state[item] = vec![value];
            }
            steps.push(Step::Write(item, value));
        }
        plan.push((random.below(SESSIONS), steps));
    }
    plan
}

/// The history session by session, so that its order carries no information.
fn history(plan: &Plan, lists: bool) -> History {
    let mut builder = Builder::new();
    let items: Vec<Item> = (0..ITEMS as u64).map(|item| builder.numbered_item(item)).collect();
    for session in 0..SESSIONS {
        for (_, steps) in plan.iter().filter(|(of, _)| *of == session) {
            let session = builder.numbered_session(session as u64);
            builder.begin(session);
            for step in steps {
                match step {
                    Step::Write(item, value) if lists => {
                        builder.append(items[*item], Value(*value))
                    }
                    Step::Write(item, value) => builder.write(items[*item], Value(*value)),
                    Step::Read(item, seen) if lists => {
                        let seen: Vec<Value> = seen.iter().copied().map(Value).collect();
                        builder.read_list(items[*item], &seen);
                    }
                    Step::Read(item, seen) => {
                        let value = seen.last().map_or(Value::INITIAL, |value| Value(*value));
                        builder.read(items[*item], value);
                    }
                }
            }
            builder.end(Status::Committed);
        }
    }
    builder.finish()
}

fn mutate(random: &mut Random, plan: &mut Plan) {
    let positions = |wanted: fn(&Step) -> bool| -> Vec<(usize, usize)> {
        let of = |(at, (_, steps)): (usize, &(usize, Vec<Step>))| {
            let positions = steps.iter().enumerate().filter(|(_, step)| wanted(step));
            positions.map(move |(position, _)| (at, position)).collect::<Vec<_>>()
        };
        plan.iter().enumerate().flat_map(of).collect()
    };
    let reads = positions(|step| matches!(step, Step::Read(..)));
    let writes = positions(|step| matches!(step, Step::Write(..)));
    match random.below(3) {
        // Two reads of an item swap their results.
        0 => {
            let (a, b) = (reads[random.below(reads.len())], reads[random.below(reads.len())]);
            let Step::Read(item, seen) = plan[a.0].1[a.1].clone() else { return };
            let Step::Read(other, also) = plan[b.0].1[b.1].clone() else { return };
            if item == other {
                plan[a.0].1[a.1] = Step::Read(item, also);
                plan[b.0].1[b.1] = Step::Read(item, seen);
            }
        }
        // A write is dropped.
        1 => {
            let (at, position) = writes[random.below(writes.len())];
            plan[at].1.remove(position);
        }
        // A read is stale.
        _ => {
            let (at, position) = reads[random.below(reads.len())];
            let Step::Read(item, mut seen) = plan[at].1[position].clone() else { return };
            seen.pop();
            plan[at].1[position] = Step::Read(item, seen);
        }
    }
}

/// Whether the history contains the operations that an edge claims.
fn is_true(history: &History, edge: &Edge) -> bool {
    let touches = |txn, writes: bool| {
        history.ops(txn).iter().any(|op| op.item() == edge.item && op.writes() == writes)
    };
    let (from, to) = (edge.from, edge.to);
    match edge.kind {
        EdgeKind::Session => history.session_of(from) == history.session_of(to) && from < to,
        EdgeKind::Wr => touches(from, true) && touches(to, false),
        EdgeKind::Ww => touches(from, true) && touches(to, true),
        EdgeKind::Rw => touches(from, false) && touches(to, true),
        EdgeKind::RealTime | EdgeKind::PredicateWr | EdgeKind::PredicateRw => false,
    }
}

#[test]
fn serial_histories_hold_and_mutated_ones_get_a_verdict_with_a_witness() {
    let mut random = Random(99);
    let levels = [Level::Causal, Level::SnapshotIsolation, Level::StrongSessionSerializable];
    let options = Options { levels: levels.to_vec(), anomalies: true };
    let (mut held, mut violated) = (0, 0);
    for round in 0..60 {
        let lists = round % 2 == 0;
        let plan = serial(&mut random, 1_500, lists);
        let report = check_with(&history(&plan, lists), &options);
        for level in levels {
            assert_eq!(report.verdict(level), Verdict::Holds, "{round}: {level}");
        }
        assert!(report.anomalies.is_empty());
        for _ in 0..4 {
            let mut changed = plan.clone();
            for _ in 0..1 + random.below(3) {
                mutate(&mut random, &mut changed);
            }
            let history = history(&changed, lists);
            let report = check_with(&history, &options);
            match report.verdict(Level::StrongSessionSerializable) {
                Verdict::Holds => held += 1,
                Verdict::Violated => {
                    violated += 1;
                    assert!(!report.anomalies.is_empty(), "{round}: a violation without a witness");
                }
                verdict => panic!("{round}: {verdict}"),
            }
            for anomaly in &report.anomalies {
                if let Witness::Cycle(edges) = &anomaly.witness {
                    let next = edges.iter().cycle().skip(1);
                    assert!(edges.iter().zip(next).all(|(edge, next)| edge.to == next.from));
                    for edge in edges {
                        assert!(is_true(&history, edge), "{round}: {edge:?}");
                    }
                }
                assert!(anomaly.sentences(&history).iter().all(|sentence| !sentence.is_empty()));
            }
        }
    }
    assert!(held > 20 && violated > 100, "{held} held, {violated} did not");
}
