//! Reviews of late results, which background tasks deliver after their calls have returned.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{ToolContext, ToolResult};

/// Reviews a late result before it is delivered.
#[async_trait]
pub(crate) trait LateReview: Send + Sync {
    /// Returns the result that may be delivered in place of `result`.
    async fn review(&self, result: ToolResult, context: &ToolContext) -> ToolResult;
}

/// The reviews of the late result of a call, in the order of the decorators that added them, the outermost decorator first.
/// The [`ToolContext`] of the call carries them.
#[derive(Clone, Default)]
pub(crate) struct LateReviews(Vec<Arc<dyn LateReview>>);

impl LateReviews {
    /// Returns a copy of the context of a call with one more review.
    pub(crate) fn add(context: &ToolContext, review: Arc<dyn LateReview>) -> ToolContext {
        let mut reviews = Self::of(context);
        reviews.0.push(review);
        context.clone().with_extension(reviews)
    }

    /// Returns the reviews of the late result of a call.
    pub(crate) fn of(context: &ToolContext) -> Self {
        context.extension::<Self>().cloned().unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Runs the reviews on a result, that of the innermost decorator first. `context` is the context of the background task.
    pub(crate) async fn run(&self, mut result: ToolResult, context: &ToolContext) -> ToolResult {
        for review in self.0.iter().rev() {
            result = review.review(result, context).await;
        }
        result
    }
}
