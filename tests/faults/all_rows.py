"""All fault tables, by their names."""

import table_align
import table_analyze
import table_analyze_text
import table_evaluate
import table_filter
import table_models
import table_outputs
import table_prepare
import table_prepared
import table_recipes
import table_runs
import table_score
import table_shortlist
import table_texts
import table_train_aligner
import table_translate_links
from fault_rows import Row

TABLES: dict[str, tuple[Row, ...]] = {
    "prepare": table_prepare.ROWS,
    "text files": table_texts.ROWS,
    "recipes": table_recipes.ROWS,
    "prepared corpora": table_prepared.ROWS,
    "runs, average, demo": table_runs.ROWS,
    "model directories, translate": table_models.ROWS,
    "links and markup of translations": table_translate_links.ROWS,
    "evaluate, generate, reproduce, bench, doctor": table_evaluate.ROWS,
    "analyze, gold files": table_analyze.ROWS,
    "analyze-text": table_analyze_text.ROWS,
    "score": table_score.ROWS,
    "align, aer": table_align.ROWS,
    "filter": table_filter.ROWS,
    "shortlist": table_shortlist.ROWS,
    "train-aligner": table_train_aligner.ROWS,
    "outputs": table_outputs.ROWS,
}
