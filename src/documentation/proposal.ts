// Merges the texts that the rules or a model propose for a table into its draft. Texts that people wrote or accepted
// stay. If a person rejected a summary or an example, only a different text replaces it.
import type { RestingPlace } from './text-dependencies.ts'
import { typesOf, type Draft, type Said } from './stored-draft.ts'

export interface ProposedText {
  readonly text: string
  readonly restsOn: readonly string[]
  /** True if the text may contain values, because its writer was given values. */
  readonly tells: boolean
}

/** The query has not run yet. */
export interface Example extends ProposedText {
  readonly query: string
}

export interface Proposal {
  readonly summary: ProposedText | null
  readonly statements: readonly ProposedText[]
  readonly columns: ReadonlyMap<string, ProposedText>
  /** The best example comes first. Only the first example that runs is used. */
  readonly examples: readonly Example[]
}

/** Replaces the texts of the earlier proposal. `proposed` counts the new texts. */
export function mergeProposal(
  before: Draft,
  proposal: Omit<Proposal, 'examples'> & { readonly example: Example | null },
  place: RestingPlace,
): { readonly draft: Draft; readonly proposed: number } {
  const proposer = new Proposed(before, place)
  const kept = before.statements.filter((said) => !isOpen(said))
  const statements = proposal.statements.map((text) => proposer.text(text, null)).filter((said) => said !== null)
  const columns = [...before.columns].map(
    ([name, { said, personal }]) => [name, { said: said !== null && isOpen(said) ? null : said, personal }] as const,
  )
  const all = new Map(columns)
  for (const [name, text] of proposal.columns) {
    const was = all.get(name) ?? { said: null, personal: null }
    all.set(name, { ...was, said: was.said ?? proposer.text(text, null) })
  }
  const draft: Draft = {
    summary: proposer.text(proposal.summary, before.summary),
    examples: proposer.text(proposal.example, before.examples),
    statements: [...kept, ...statements],
    columns: new Map([...all].filter(([, { said, personal }]) => said !== null || personal !== null)),
  }
  return { draft, proposed: proposer.count }
}

/** True for a generated text that nobody has accepted, edited or rejected. */
function isOpen(said: Said): boolean {
  return said.origin === 'GENERATED' && said.status === 'PROPOSED'
}

class Proposed {
  count = 0
  readonly #place: RestingPlace
  /** Texts that must not be proposed again: people have decided about them, or this proposal already has them. */
  readonly #judged: Set<string>
  /** The texts of the earlier proposal, which do not count as new. */
  readonly #open: ReadonlySet<string>

  constructor(before: Draft, place: RestingPlace) {
    this.#place = place
    const ofColumns = [...before.columns.values()].map((column) => column.said)
    const all = [before.summary, before.examples, ...before.statements, ...ofColumns].filter((said) => said !== null)
    this.#judged = new Set(all.filter((said) => !isOpen(said)).map((said) => flat(said.text)))
    this.#open = new Set(all.filter(isOpen).map((said) => flat(said.text)))
  }

  /**
   * A text that a person accepted or edited stays. A rejected text stays unless a new text is proposed. Otherwise
   * returns the proposed text, or null.
   */
  text(proposed: ProposedText | null, was: Said | null): Said | null {
    if (was !== null && !isOpen(was) && was.status !== 'REJECTED') return was
    if (proposed === null || this.#judged.has(flat(proposed.text))) return was !== null && !isOpen(was) ? was : null
    const { text, tells } = proposed
    const restsOn = [...new Set(proposed.restsOn)]
    this.#judged.add(flat(text))
    if (!this.#open.has(flat(text))) this.count++
    return { text, origin: 'GENERATED', status: 'PROPOSED', restsOn, tells, types: typesOf(restsOn, this.#place) }
  }
}

function flat(text: string): string {
  return text.toLowerCase().replaceAll(/\s+/g, ' ').trim()
}
