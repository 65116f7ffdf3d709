//! Random small histories of registers or lists, valid and invalid.

use isolde_checker::{Builder, History, Item, Session, Status, Value};

/// SplitMix64: the same histories on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

#[derive(Clone, Copy)]
enum Step {
    Read(usize),
    Write(usize, u64),
}

struct Plan {
    session: usize,
    committed: bool,
    steps: Vec<Step>,
}

/// A history of two to five transactions.
pub fn history(random: &mut Random) -> History {
    let items = 1 + random.below(3);
    let sessions = 1 + random.below(4);
    let lists = random.chance(40);
    let aborts = random.chance(25);
    let mut value = 0;
    let mut plans = Vec::new();
    for _ in 0..2 + random.below(4) {
        let mut steps = Vec::new();
        for _ in 0..1 + random.below(4) {
            let item = random.below(items);
            if random.chance(50) {
                steps.push(Step::Read(item));
            } else {
                value += 1;
                steps.push(Step::Write(item, value));
            }
        }
        let committed = !(aborts && random.chance(25));
        plans.push(Plan { session: random.below(sessions), committed, steps });
    }
    // Mostly what a database could have returned, now and then an arbitrary version.
    let wild = random.below(3) * 15;
    let times = random.chance(50);
    build(random, &plans, items, lists, wild, times)
}

fn build(
    random: &mut Random,
    plans: &[Plan],
    items: usize,
    lists: bool,
    wild: usize,
    times: bool,
) -> History {
    let mut builder = Builder::new();
    let ids: Vec<Item> = (0..items).map(|item| builder.item(["x", "y", "z"][item])).collect();
    let sessions: Vec<Session> =
        (0..4).map(|session| builder.session(["a", "b", "c", "d"][session])).collect();
    let written = |item: usize| -> Vec<(usize, u64)> {
        let of_item = |(at, plan): (usize, &Plan)| {
            let values = plan.steps.iter().filter_map(move |step| match step {
                Step::Write(of, value) if *of == item => Some((at, *value)),
                _ => None,
            });
            values.collect::<Vec<_>>()
        };
        plans.iter().enumerate().flat_map(of_item).collect()
    };
    // The final list of each item: the committed appends, mostly in the order of the transactions.
    let finals: Vec<Vec<(usize, u64)>> = (0..items)
        .map(|item| {
            let mut list = written(item);
            list.retain(|(at, _)| plans[*at].committed);
            if wild > 0 {
                for at in (1..list.len()).rev() {
                    if random.chance(40) {
                        list.swap(at, random.below(at + 1));
                    }
                }
                // Each transaction's own appends keep their order.
                let mut sorted = list.clone();
                sorted.sort_by_key(|(_, value)| *value);
                for owner in 0..plans.len() {
                    let mut own = sorted.iter().filter(|(at, _)| *at == owner);
                    for slot in list.iter_mut().filter(|(at, _)| *at == owner) {
                        *slot = *own.next().unwrap();
                    }
                }
            }
            list
        })
        .collect();
    let mut ends = [0_u64; 4];
    let mut state: Vec<u64> = vec![Value::INITIAL.0; items];
    let mut lengths = vec![0; items];
    for (at, plan) in plans.iter().enumerate() {
        builder.begin(sessions[plan.session]);
        if times {
            let begin = ends[plan.session].max(2 * at as u64) + 1;
            let end = begin + random.below(6) as u64;
            ends[plan.session] = end;
            builder.times(begin, end);
        }
        let mut own: Vec<Option<u64>> = vec![None; items];
        let mut own_list: Vec<Vec<u64>> = vec![Vec::new(); items];
        for step in &plan.steps {
            match *step {
                Step::Write(item, value) if lists => {
                    own_list[item].push(value);
                    builder.append(ids[item], Value(value));
                }
                Step::Write(item, value) => {
                    own[item] = Some(value);
                    builder.write(ids[item], Value(value));
                }
                Step::Read(item) if lists => {
                    let all = &finals[item];
                    let limit = all.iter().position(|(of, _)| *of == at).unwrap_or(all.len());
                    let mut length = lengths[item].min(limit);
                    if random.chance(wild) {
                        length = random.below(limit + 1);
                    }
                    let mut list: Vec<Value> =
                        all[..length].iter().map(|(_, value)| Value(*value)).collect();
                    // Now and then an element that is rolled back later.
                    let others = written(item).into_iter().filter(|(of, _)| !plans[*of].committed);
                    list.extend(
                        others
                            .filter(|(of, _)| *of != at && random.chance(wild / 3))
                            .map(|(_, value)| Value(value)),
                    );
                    list.extend(own_list[item].iter().map(|value| Value(*value)));
                    builder.read_list(ids[item], &list);
                }
                Step::Read(item) => {
                    let mut value = own[item].unwrap_or(state[item]);
                    if random.chance(wild) && (own[item].is_none() || random.chance(10)) {
                        let choices = written(item);
                        let choice = random.below(choices.len() + 1);
                        value = choices.get(choice).map_or(Value::INITIAL.0, |(_, value)| *value);
                    }
                    builder.read(ids[item], Value(value));
                }
            }
        }
        builder.end(if plan.committed { Status::Committed } else { Status::Aborted });
        if plan.committed {
            for item in 0..items {
                state[item] = own[item].unwrap_or(state[item]);
                if let Some(position) = finals[item].iter().rposition(|(of, _)| *of == at) {
                    lengths[item] = lengths[item].max(position + 1);
                }
            }
        }
    }
    builder.finish()
}
