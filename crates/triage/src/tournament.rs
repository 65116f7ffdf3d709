//! A tournament over the most similar candidates: each round compares them in
//! pairs and eliminates the losers, so that K candidates take K - 1 pairs; each pair is asked about k times, and the majority counts (Pisco,
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
    /// Neither is nearer: the more similar one advances.
    Neither,
}

/// The result of a tournament.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TournamentResult {
    /// The candidates by their numbers: the winner first, then the others by the
    /// round that they reached.
    pub order: Vec<usize>,
    /// The answer that decided the winner's last comparison; none where there was
    /// only one candidate.
    pub last: Option<Answer>,
    pub questions: usize,
}

/// Decides between candidates `0..candidates`, which are ordered by their
/// similarity. `ask(a, b, again)` compares two of them.
pub fn decide<E>(
    candidates: usize,
    times: usize,
    mut ask: impl FnMut(usize, usize, usize) -> Result<Answer, E>,
) -> Result<TournamentResult, E> {
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
            // A tie is decided by similarity.
            let second_wins = votes(Nearer::Second) > votes(Nearer::First);
            let side = if second_wins { Nearer::Second } else { Nearer::First };
            let (winner, loser) = if second_wins { (second, first) } else { (first, second) };
            let same = answers.iter().filter(|a| a.nearer == side && a.same).count();
            let answer = answers.iter().find(|a| a.nearer == side).or(answers.first()).cloned();
            last = answer.map(|answer| Answer { nearer: side, same: 2 * same > times, ..answer });
            winners.push(winner);
            losers.push(loser);
        }
        losers.sort_unstable();
        out.push(losers);
        winners.sort_unstable();
        left = winners;
    }
    let order = left.into_iter().chain(out.into_iter().rev().flatten()).collect();
    Ok(TournamentResult { order, last, questions })
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
    use isolde_model::random::Random;
    use std::convert::Infallible;

    fn answer(nearer: Nearer) -> Answer {
        Answer { nearer, same: nearer != Nearer::Neither, reason: String::new() }
    }

    #[test]
    fn number_of_questions_is_at_most_k_times_candidates_minus_one() {
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
                assert_eq!(all, (0..candidates).collect::<Vec<_>>(), "every candidate is ranked");
            }
        }
    }

    #[test]
    fn nearest_candidate_wins_from_every_position() {
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
    fn similarity_decides_when_no_answer_prefers_a_side() {
        let Ok(decided) = decide(5, 3, |_, _, _| Ok::<_, Infallible>(answer(Nearer::Neither)));
        assert_eq!(decided.order[0], 0);
        assert!(decided.last.is_some_and(|last| !last.same));
    }

    #[test]
    fn majority_of_several_answers_decides() {
        let Ok(decided) = decide(2, 3, |_, _, again| {
            Ok::<_, Infallible>(answer(if again == 0 { Nearer::First } else { Nearer::Second }))
        });
        assert_eq!((decided.order[0], decided.questions), (1, 3));
    }

    #[test]
    fn single_candidate_needs_no_question() {
        let Ok(decided) = decide(1, 3, |_, _, _| Ok::<_, Infallible>(answer(Nearer::First)));
        assert_eq!((decided.order, decided.last, decided.questions), (vec![0], None, 0));
    }
}
