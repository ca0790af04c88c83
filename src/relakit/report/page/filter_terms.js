// The words that a report of a filtered corpus explains.

/** @type {Object<string, {name: string, text: string, phrases?: string[]}>} phrases are found in texts */
const GLOSSARY = {
  probability: {
    name: "Probability",
    text: "How likely a pair is clean: of clean pairs and planted noise that look like it, the share that was clean. It rests on the noise that is expected, and knows the planted kinds of noise only.",
    phrases: ["probability"],
  },
  planted: {
    name: "Planted noise",
    text: "Clean pairs that were spoilt on purpose, so that it is known what is noise. Shuffled: the target of another pair. Inserted: a phrase of another pair in the target. Truncated: the target without its end. Language: one side in the language of the other. Copied: one side is a copy of the other.",
    phrases: ["planted noise"],
  },
  heldOut: {
    name: "Held out",
    text: "Pairs that were not used for the fit. Their noise shares no words with that of the fit.",
    phrases: ["held out", "held-out"],
  },
  area: {
    name: "AUC",
    text: "Area under the ROC curve: how often a clean pair ranks before a noisy one, if one of each is drawn. 1 is perfect, 0.5 is chance, below 0.5 is the wrong way round.",
    phrases: ["AUC"],
  },
  precision: {
    name: "Precision and recall",
    text: "Recall: the share of the noise that is rejected. Precision: the share of noise among what is rejected, if half of all pairs were noise.",
    phrases: ["precision", "recall"],
  },
  weight: {
    name: "Weight",
    text: "By how much the log-odds of a kind of noise against a clean pair rise when a feature is one standard deviation higher. Features that say the same share their weight. Most may only speak against a pair; where planted noise had it the other way round, the weight is 0.",
    phrases: ["weights", "weight"],
  },
  unsupported: {
    name: "Unsupported, uncovered",
    text: "A target word is unsupported if it belongs to a phrase that nothing in the source supports, with a probability above one half: few of its words are linked with source words, and the model finds something else much likelier in their place. A source word is uncovered if no target word is linked with it.",
    phrases: ["unsupported", "uncovered"],
  },
  cut: {
    name: "Cut",
    text: "The worst number that a pair may have to be kept.",
    phrases: ["cut"],
  },
};
