// About how many tokens a text is to a model. Models differ.

/** Characters of a JSON description that are one token to the o200k encoding: counted on one description with gpt-tokenizer. */
const CHARACTERS_PER_TOKEN = 3.9

export function approximateTokens(text: string): number {
  const exact = text.length / CHARACTERS_PER_TOKEN
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, exact))) - 1)
  return Math.round(exact / step) * step
}
