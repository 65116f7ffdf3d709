//! Rows of different lengths in one array (compressed sparse rows): the adjacency lists of a
//! graph, the writers of each item, the readers of each version.

use super::components::Digraph;

/// Rows of different lengths in one array: row `n` is `all[starts[n]..starts[n + 1]]`.
#[derive(Clone, Debug)]
pub struct Rows<T> {
    /// Where each row begins, plus the end of the last one.
    pub starts: Vec<u32>,
    /// The elements of all rows.
    pub all: Vec<T>,
}

impl<T> Default for Rows<T> {
    fn default() -> Rows<T> {
        Rows { starts: vec![0], all: Vec::new() }
    }
}

impl<T> Rows<T> {
    /// The elements of a row.
    #[inline]
    pub fn of(&self, row: u32) -> &[T] {
        let [from, to] = self.bounds(row);
        &self.all[from..to]
    }

    /// Where a row begins and ends in `all`.
    #[inline]
    pub(crate) fn bounds(&self, row: u32) -> [usize; 2] {
        [self.starts[row as usize] as usize, self.starts[row as usize + 1] as usize]
    }

    /// Ends the row to which elements were pushed into `all`.
    pub fn end_row(&mut self) {
        self.starts.push(self.all.len() as u32);
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// No rows, with room for this many rows and elements.
    pub(crate) fn with_capacity(rows: usize, elements: usize) -> Rows<T> {
        let mut starts = Vec::with_capacity(rows + 1);
        starts.push(0);
        Rows { starts, all: Vec::with_capacity(elements) }
    }
}

impl<T: Copy + Default> Rows<T> {
    /// Sorts elements into rows by counting; each row keeps their order.
    pub(crate) fn from_pairs(
        rows: usize,
        pairs: impl Iterator<Item = (u32, T)> + Clone,
    ) -> Rows<T> {
        let mut counter = RowCounter::new(rows);
        pairs.clone().for_each(|(row, _)| counter.count(row));
        let mut filler = counter.into_filler();
        pairs.for_each(|(row, element)| filler.push(row, element));
        filler.finish()
    }
}

/// Counts the elements of each row: the first of two passes that build [`Rows`].
pub(crate) struct RowCounter {
    starts: Vec<u32>,
}

impl RowCounter {
    pub(crate) fn new(rows: usize) -> RowCounter {
        RowCounter { starts: vec![0; rows + 1] }
    }

    /// Counts an element of a row.
    #[inline]
    pub(crate) fn count(&mut self, row: u32) {
        self.starts[row as usize + 1] += 1;
    }

    /// Ends the first pass.
    pub(crate) fn into_filler<T: Copy + Default>(self) -> RowFiller<T> {
        let mut starts = self.starts;
        for row in 1..starts.len() {
            starts[row] += starts[row - 1];
        }
        let all = vec![T::default(); starts.last().copied().unwrap_or(0) as usize];
        RowFiller { starts, all }
    }
}

/// Stores the elements of each row: the second of two passes that build [`Rows`].
pub(crate) struct RowFiller<T> {
    /// Where the next element of each row goes.
    starts: Vec<u32>,
    all: Vec<T>,
}

impl<T> RowFiller<T> {
    /// Adds an element to a row. Each row must get as many elements as were counted.
    #[inline]
    pub(crate) fn push(&mut self, row: u32, element: T) {
        let at = &mut self.starts[row as usize];
        self.all[*at as usize] = element;
        *at += 1;
    }

    /// Ends the second pass.
    pub(crate) fn finish(mut self) -> Rows<T> {
        // The start of each row has moved to its end: that is the start of the next row.
        self.starts.rotate_right(1);
        self.starts[0] = 0;
        Rows { starts: self.starts, all: self.all }
    }
}

impl Rows<u32> {
    /// The indexes `0..keys.len()` grouped by key, each mapped by `element`.
    pub(crate) fn group(
        rows: usize,
        keys: &[u32],
        element: impl Fn(u32) -> u32 + Copy,
    ) -> Rows<u32> {
        Rows::from_pairs(rows, keys.iter().zip(0..).map(move |(key, at)| (*key, element(at))))
    }

    /// The graph with these edges. Frees the list before it returns: both may be large.
    pub(crate) fn of_edges(nodes: usize, edges: Vec<(u32, u32)>) -> Rows<u32> {
        Rows::from_pairs(nodes, edges.iter().copied())
    }
}

impl Digraph for Rows<u32> {
    fn len(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    fn next(&self, node: u32, cursor: u32) -> Option<(u32, u32)> {
        self.of(node).get(cursor as usize).map(|to| (*to, cursor + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_the_order_of_their_elements() {
        let pairs = [(2, 'a'), (0, 'b'), (2, 'c'), (3, 'd'), (0, 'e')];
        let rows = Rows::from_pairs(4, pairs.into_iter());
        assert_eq!(rows.len(), 4);
        assert_eq!((rows.of(0), rows.of(1)), (&['b', 'e'][..], &[][..]));
        assert_eq!((rows.of(2), rows.of(3)), (&['a', 'c'][..], &['d'][..]));
        assert_eq!(Rows::of_edges(0, Vec::new()).len(), 0);
        assert_eq!(Rows::group(2, &[1, 0, 1], |at| 10 * at).all, [10, 0, 20]);
    }
}
