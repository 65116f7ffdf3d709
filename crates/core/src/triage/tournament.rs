//! A tournament over the candidates that look most similar: in each round two
//! and two are compared, and who loses is out, so that K candidates take K - 1
//! pairs; each pair is asked about k times, and the majority counts (Pisco,
//! appendix B.3: at most k (K - 1) questions).

/// Which of two candidates is nearer to the finding, and whether it is the
/// same bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub nearer: Nearer,
    /// Whether that one is the same bug as the finding.
    pub same: bool,
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nearer {
    First,
    Second,
    /// Neither is: whoever was more similar goes on.
    Neither,
}

/// How a tournament ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The candidates by their numbers, the winner first, then those who came
    /// farthest.
    pub order: Vec<usize>,
    /// What was said when the winner won last; none where there was nobody to
    /// compare it with.
    pub last: Option<Answer>,
    pub questions: usize,
}

/// Decides between candidates `0..candidates`, which stand in the order of
/// their similarity. `ask(a, b, again)` compares two of them.
pub fn decide<E>(
    candidates: usize,
    times: usize,
    mut ask: impl FnMut(usize, usize, usize) -> Result<Answer, E>,
) -> Result<Decided, E> {
    let times = times.max(1);
    let mut left: Vec<usize> = (0..candidates).collect();
    let mut out: Vec<Vec<usize>> = Vec::new();
    let (mut questions, mut last) = (0, None);
    while left.len() > 1 {
        let (mut winners, mut losers) = (Vec::new(), Vec::new());
        for pair in seeded(&left) {
            let [first, second] = pair[..] else {
                winners.extend(pair);
                continue;
            };
            let mut answers: Vec<Answer> = Vec::new();
            for again in 0..times {
                answers.push(ask(first, second, again)?);
                questions += 1;
            }
            let votes = |side| answers.iter().filter(|a| a.nearer == side).count();
            // Where nothing decides, similarity does.
            let second_wins = votes(Nearer::Second) > votes(Nearer::First);
            let side = if second_wins { Nearer::Second } else { Nearer::First };
            let (winner, loser) = if second_wins { (second, first) } else { (first, second) };
            let same = answers.iter().filter(|a| a.nearer == side && a.same).count();
            let told = answers.iter().find(|a| a.nearer == side).or(answers.first()).cloned();
            last = told.map(|answer| Answer { nearer: side, same: 2 * same > times, ..answer });
            winners.push(winner);
            losers.push(loser);
        }
        losers.sort_unstable();
        out.push(losers);
        winners.sort_unstable();
        left = winners;
    }
    let order = left.into_iter().chain(out.into_iter().rev().flatten()).collect();
    Ok(Decided { order, last, questions })
}

/// The most similar meets the least similar, so that the two best meet last.
fn seeded(left: &[usize]) -> Vec<Vec<usize>> {
    let half = left.len() / 2;
    let mut pairs: Vec<Vec<usize>> =
        (0..half).map(|n| vec![left[n], left[left.len() - 1 - n]]).collect();
    if left.len() % 2 == 1 {
        pairs.push(vec![left[half]]);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::convert::Infallible;

    fn answer(nearer: Nearer) -> Answer {
        Answer { nearer, same: nearer != Nearer::Neither, reason: String::new() }
    }

    #[test]
    fn no_more_is_asked_than_k_times_one_less_than_there_are() {
        let mut random = Random::stream(7, "judge", 0);
        for candidates in 0..70 {
            for times in 1..=4 {
                let decided = decide(candidates, times, |a, b, _| {
                    assert!(a < candidates && b < candidates && a != b);
                    let sides = [Nearer::First, Nearer::Second, Nearer::Neither];
                    Ok::<_, Infallible>(answer(sides[random.below(3)]))
                });
                let Ok(decided) = decided;
                assert!(decided.questions <= times * candidates.saturating_sub(1));
                let mut all = decided.order.clone();
                all.sort_unstable();
                assert_eq!(all, (0..candidates).collect::<Vec<_>>(), "everybody has a place");
            }
        }
    }

    #[test]
    fn the_best_wins_wherever_it_stands() {
        for best in 0..9 {
            let Ok(decided) = decide(9, 1, |a, b, _| {
                let side = match best {
                    _ if a == best => Nearer::First,
                    _ if b == best => Nearer::Second,
                    _ => Nearer::Neither,
                };
                Ok::<_, Infallible>(answer(side))
            });
            assert_eq!(decided.order[0], best);
            assert!(decided.last.is_some_and(|l| l.same));
        }
    }

    #[test]
    fn where_the_judge_cannot_tell_similarity_decides() {
        let Ok(decided) = decide(5, 3, |_, _, _| Ok::<_, Infallible>(answer(Nearer::Neither)));
        assert_eq!(decided.order[0], 0);
        assert!(decided.last.is_some_and(|last| !last.same));
    }

    #[test]
    fn the_majority_of_several_answers_counts() {
        let Ok(decided) = decide(2, 3, |_, _, again| {
            Ok::<_, Infallible>(answer(if again == 0 { Nearer::First } else { Nearer::Second }))
        });
        assert_eq!((decided.order[0], decided.questions), (1, 3));
    }

    #[test]
    fn one_alone_is_asked_about_by_nobody() {
        let Ok(decided) = decide(1, 3, |_, _, _| Ok::<_, Infallible>(answer(Nearer::First)));
        assert_eq!((decided.order, decided.last, decided.questions), (vec![0], None, 0));
    }
}
