// The words that a report explains; one of texts has fewer of them, some with another meaning.

/** @type {Object<string, {name: string, text: string, phrases?: string[]}>} phrases are found in texts */
const ALL_TERMS = {
  attention: {
    name: "Encoder, decoder, cross",
    text: "Encoder: source words attend to each other. Decoder: target words attend to those before them. Cross: target words attend to the source.",
  },
  bleu: {
    name: "BLEU",
    text: "How many words and word sequences the model's translations share with the references, from 0 to 100; higher is better. It is a number of a whole test set, and says little about few sentences.",
    phrases: ["BLEU"],
  },
  chrf: {
    name: "chrF",
    text: "How many character sequences a translation shares with its reference, from 0 to 100; higher is better. It can be read sentence by sentence.",
    phrases: ["chrF"],
  },
  loss: {
    name: "Loss",
    text: "Cross-entropy of the reference in nats for each token: how unlikely the model finds it. Lower is better.",
    phrases: ["loss"],
  },
  sparsity: {
    name: "Sparsity",
    text: "Share of weights that are exactly 0, among the keys that the query may see. Softmax never gives 0.",
    phrases: ["sparsity", "exactly 0"],
  },
  null: {
    name: "Null rate",
    text: "Share of queries whose weights are all 0: the head attends to nothing there. Of the mean of heads: those that are null in every head of the layer.",
    phrases: ["null rate", "attend to nothing", "null"],
  },
  shuffled: {
    name: "Shuffled targets, wrong sources",
    text: "The same targets, each with the source of another pair. Where the interval of the difference includes 0, the data show no difference.",
    phrases: ["shuffled targets", "wrong sources", "wrong source"],
  },
  sink: {
    name: "Sink",
    text: "A token that says little but draws much of a head's weight: the first of the sentence, or its end. First and end sink are the shares of the head's weight that lie there.",
    phrases: ["sink", "first sink", "end sink"],
  },
  diversity: {
    name: "Head diversity",
    text: "Entropy of the heads' mean distribution minus the mean of their entropies (generalised Jensen-Shannon divergence), in nats. 0: all heads look at the same keys. A null row is a distribution of its own.",
    phrases: ["head diversity"],
  },
  temperature: {
    name: "Temperature τ",
    text: "Weights that do not sum to 1 go through a softmax of weight^τ before heads are compared. With a small τ little counts but which weights are 0. Compare models at the same τ.",
    phrases: ["temperature", "τ"],
  },
  aer: {
    name: "Alignment error rate (AER)",
    text: "1 − (|A∩S| + |A∩P|) / (|A| + |S|), with found links A, sure gold links S and possible ones P. 0 is perfect. A target word links to the source word that it attends to most; it has no link if all its weights are 0.",
    phrases: ["AER", "alignment error rate"],
  },
  aol: {
    name: "AoL",
    text: "Alignment error rate of each layer's mean attention, averaged over layers.",
    phrases: ["AoL"],
  },
  aoh: {
    name: "AoH",
    text: "Alignment error rate of each layer's best head, averaged over layers. The heads are chosen on the same sentences.",
    phrases: ["AoH"],
  },
  reading: {
    name: "Normal and shifted",
    text: "Attention of a target word is read in the step that predicts it (normal), or in the next, of which it is the input (shifted).",
    phrases: ["normal reading", "shifted reading", "normal", "shifted"],
  },
  gold: {
    name: "Gold links",
    text: "Links between words that people, or a word aligner, made: what alignments are compared with. Sure ones must be found, possible ones may be.",
    phrases: ["gold links", "gold link"],
  },
  clarity: {
    name: "Clarity",
    text: "How clearly a head points, from 0 to 1: the mutual information of target and source token among the rows that attend to anything, as a share of the most there could be, times the share of these rows. 1: each row has a column to itself. 0: all rows look alike, or at nothing. Mean over the sentences on this page.",
    phrases: ["clarity"],
  },
  rms: {
    name: "RMS(z)",
    text: "Root mean square of the heads' output z before its norm. A layer in which it is many times that of others is unstable.",
    phrases: ["RMS(z)"],
  },
  gates: {
    name: "Closed gates",
    text: "Share of the norm's gates, sigmoid(w ⊙ z), below 0.01: these features pass nothing on and hardly learn.",
    phrases: ["closed gates"],
  },
  units: {
    name: "Words and tokens",
    text: "A word may be several tokens. Between words, weights are summed over a source word's tokens and averaged over a target word's.",
  },
  colours: {
    name: "Colours",
    text: "What the darkest colour stands for. Own: the picture's largest weight. Shared: the largest weight of both pictures. Row share: the whole weight of a row, which makes weights comparable that sum to 1 in one model and not in the other. Two models beside each other start on a scale that they share.",
  },
  translation: {
    name: "Reference and own translation",
    text: "The model is made to write a given text while its attention is recorded: the reference, or what it wrote itself. The numbers of the whole test set are those of the references.",
  },
  classes: {
    name: "Null rate by class",
    text: "The cross-attention's null rate after a target word of each class: given tags, or what the word looks like.",
  },
  weights: {
    name: "Weights on this page",
    text: "Kept in 255 steps of each head's largest weight. An empty cell is a weight of exactly 0: smaller weights than a step count as one. Links are found from the exact weights.",
  },
};

/** What only sentence pairs have. */
const TERMS_OF_PAIRS = ["attention", "bleu", "chrf", "loss", "shuffled", "aer", "aol", "aoh", "reading", "gold", "translation", "classes"];

/** What has another meaning where models read texts. */
const TERMS_OF_TEXTS = {
  query: {
    name: "Queries and keys",
    text: "A row is a token that looks around, the query; the columns are the tokens that it may look at, the keys. Grey cells are hidden from it: tokens behind it in a causal model, or those outside of its window.",
    phrases: ["queries", "query"],
  },
  sink: {
    name: "Sink",
    text: "A token that says little but draws much of a head's weight: the first of the text, or in models that see all of it the last. First and last sink are the shares of the head's weight that lie there; first sink is of the queries that see another token too.",
    phrases: ["sink", "first sink", "last sink", "weight on the first token", "weight lies on the first token"],
  },
  clarity: {
    ...ALL_TERMS.clarity,
    text: "How clearly a head points, from 0 to 1: the mutual information of query and key among the rows that attend to anything, as a share of the most there could be, times the share of these rows. 1: each row has a column to itself, be it the token before, or the token itself. 0: all rows look alike, or at nothing. Mean over the texts on this page.",
  },
  units: {
    name: "Words and tokens",
    text: "A word may be several tokens. Between words, weights are summed over the looked-at word's tokens and averaged over those of the word that looks. A special token is a word of its own.",
  },
  weights: {
    name: "Weights on this page",
    text: "Kept in 255 steps of each head's largest weight. An empty cell is a weight of exactly 0: smaller weights than a step count as one.",
  },
};

const GLOSSARY = IS_OF_TEXTS
  ? { ...Object.fromEntries(Object.entries(ALL_TERMS).filter(([key]) => !TERMS_OF_PAIRS.includes(key))), ...TERMS_OF_TEXTS }
  : ALL_TERMS;
