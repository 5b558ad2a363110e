//! Embeddings of tools and queries, for a search by meaning.

use std::fmt;

/// The weight of the use case in the embedding of a tool, relative to the name and the description.
const USE_CASE_WEIGHT: f32 = 0.5;

/// The greatest absolute value among the stored components of a vector. Before rounding, the components are scaled to it.
const COMPONENT_MAX: f32 = 1_000.0;

/// The maximum number of components. With it and [`COMPONENT_MAX`], the dot product of two embeddings fits into 32 bits.
const COMPONENTS_MAX: usize = 2_048;

/// A model that converts texts to vectors. Texts with a similar meaning have vectors with a similar direction.
///
/// The search was tuned for static word vectors, such as those of [`WordVectors`](crate::WordVectors). A call blocks the thread
/// of the search. A search makes at most two calls for each catalog.
pub trait EmbeddingModel: Send + Sync {
    /// Returns the vector of a text, or `None` if the model knows no word of it. All vectors of a model must have the same
    /// length, which must not exceed 2,048.
    fn embed(&self, text: &str) -> Option<Vec<f32>>;
}

impl fmt::Debug for dyn EmbeddingModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmbeddingModel")
    }
}

/// A unit vector. Its components are stored as 16-bit integers, which processors multiply fast.
#[derive(Clone, PartialEq)]
pub struct Embedding {
    components: Box<[i16]>,
    /// The factor that converts the stored components to those of the unit vector.
    scale: f32,
}

impl Embedding {
    /// Computes the embedding of a tool from its name, its description and the situation in which to use it. Returns `None` if
    /// the model knows none of the words.
    #[must_use]
    pub fn of_tool(model: &dyn EmbeddingModel, name: &str, description: &str, use_case: &str) -> Option<Self> {
        Self::of_weighted(model, [(name, 1.0), (description, 1.0), (use_case, USE_CASE_WEIGHT)])
    }

    /// Computes the weighted sum of the unit vectors of texts, and normalises it. Returns `None` if the model knows none of the
    /// words.
    pub(super) fn of_weighted<'t>(
        model: &dyn EmbeddingModel,
        texts: impl IntoIterator<Item = (&'t str, f32)>,
    ) -> Option<Self> {
        let mut sum: Vec<f32> = Vec::new();
        for (text, weight) in texts.into_iter().filter(|(text, _)| !text.is_empty()) {
            let Some(vector) = model.embed(text) else { continue };
            let factor = weight / norm(&vector);
            if factor.is_finite() {
                sum.resize(sum.len().max(vector.len()), 0.0);
                for (sum_component, component) in sum.iter_mut().zip(&vector) {
                    *sum_component += component * factor;
                }
            }
        }
        Self::quantise(&sum)
    }

    /// Normalises a vector and rounds its components. Returns `None` if all components are 0, if the norm is not finite, or if
    /// there are too many components.
    fn quantise(vector: &[f32]) -> Option<Self> {
        let component_max = vector
            .iter()
            .fold(0.0_f32, |component_max, component| component_max.max(component.abs()));
        let (step, norm) = (component_max / COMPONENT_MAX, norm(vector));
        if !(step > 0.0 && norm.is_finite()) || vector.len() > COMPONENTS_MAX {
            return None;
        }
        #[allow(
            clippy::cast_possible_truncation,
            reason = "no scaled component exceeds `COMPONENT_MAX`"
        )]
        let components = vector.iter().map(|component| (component / step).round() as i16);
        Some(Self {
            components: components.collect(),
            scale: step / norm,
        })
    }
}

impl fmt::Debug for Embedding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Embedding({} components)", self.components.len())
    }
}

fn norm(vector: &[f32]) -> f32 {
    vector.iter().map(|component| component * component).sum::<f32>().sqrt()
}

/// The embeddings of the tools of a catalog, by slot, in contiguous memory.
#[derive(Clone, Debug, Default)]
pub(super) struct EmbeddingTable {
    components: Vec<i16>,
    /// The [`Embedding::scale`] of each embedding; 0 for a tool without an embedding.
    scales: Vec<f32>,
    /// The number of components of each embedding, which the first stored embedding determines.
    width: usize,
}

impl EmbeddingTable {
    /// Sets the embedding of a tool, or removes it. An embedding with another number of components than the first one is not
    /// stored.
    pub(super) fn set(&mut self, slot: usize, embedding: Option<&Embedding>) {
        if let Some(embedding) = embedding.filter(|_| self.width == 0) {
            self.width = embedding.components.len();
        }
        let embedding = embedding.filter(|embedding| embedding.components.len() == self.width);
        if slot >= self.scales.len() && embedding.is_some() {
            self.scales.resize(slot + 1, 0.0);
            self.components.resize((slot + 1) * self.width, 0);
        }
        let Some(scale) = self.scales.get_mut(slot) else { return };
        *scale = embedding.map_or(0.0, |embedding| embedding.scale);
        if let Some(embedding) = embedding {
            self.components[slot * self.width..][..self.width].copy_from_slice(&embedding.components);
        }
    }

    /// Returns the cosine of the angle between an embedding and that of each tool, by slot; 0 for a tool without an embedding.
    /// The list ends with the last slot that ever had an embedding. It is empty if the query's embedding has another number of
    /// components than those of the tools.
    pub(super) fn similarities(&self, query: &Embedding) -> Vec<f32> {
        if query.components.len() != self.width {
            return Vec::new();
        }
        let rows = self.components.chunks_exact(self.width.max(1)).zip(&self.scales);
        let similarity = |(row, scale): (&[i16], &f32)| {
            let pairs = row.iter().zip(&query.components);
            #[allow(clippy::cast_precision_loss, reason = "a cosine needs no precision")]
            let dot = pairs.map(|(a, b)| i32::from(*a) * i32::from(*b)).sum::<i32>() as f32;
            dot * scale * query.scale
        };
        rows.map(similarity).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A model that knows three valid vectors (`east`, `north` and `up`) and four that have no embedding.
    struct Directions;

    impl EmbeddingModel for Directions {
        fn embed(&self, text: &str) -> Option<Vec<f32>> {
            match text {
                "east" => Some(vec![3.0, 0.0]),
                "north" => Some(vec![0.0, 0.001]),
                "nowhere" => Some(vec![0.0, 0.0]),
                "overflow" => Some(vec![f32::MAX, f32::MAX]),
                "undefined" => Some(vec![f32::NAN, 1.0]),
                "up" => Some(vec![0.0, 0.0, 1.0]),
                "wide" => Some(vec![1.0; COMPONENTS_MAX + 1]),
                _ => None,
            }
        }
    }

    fn embedding(text: &str) -> Option<Embedding> {
        Embedding::of_weighted(&Directions, [(text, 1.0)])
    }

    #[test]
    fn similarity_is_the_cosine_of_the_angle() {
        let mut table = EmbeddingTable::default();
        let northeast = Embedding::of_weighted(&Directions, [("east", 1.0), ("north", 1.0)]);
        table.set(0, embedding("east").as_ref());
        table.set(2, northeast.as_ref());
        table.set(3, embedding("east").as_ref());
        table.set(3, None);
        let similarities = table.similarities(&embedding("east").unwrap());
        let rounded: Vec<_> = similarities.iter().map(|cosine| (cosine * 100.0).round()).collect();
        assert_eq!(rounded, [100.0, 0.0, 71.0, 0.0]);
    }

    #[test]
    fn a_vector_without_a_direction_or_of_another_length_is_not_stored() {
        for text in ["nowhere", "overflow", "undefined", "unknown", "wide"] {
            assert_eq!(embedding(text), None, "{text}");
        }
        let mut table = EmbeddingTable::default();
        assert!(table.similarities(&embedding("east").unwrap()).is_empty());
        table.set(0, embedding("east").as_ref());
        table.set(1, embedding("up").as_ref());
        assert_eq!(table.similarities(&embedding("east").unwrap()).len(), 1);
        assert!(table.similarities(&embedding("up").unwrap()).is_empty());
    }
}
