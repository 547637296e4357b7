// A manager's edit of one table's documentation: what was sent × what stood there → the new draft, or what is wrong with
// it, each by name. Pure.
import type { RestingPlace } from './columns.ts'
import { EMPTY, textsOf, typesOf, type Draft, type Said } from './draft.ts'

/** A text as it is sent; what is left out has a default. */
interface AskedText {
  readonly text: string
  readonly origin?: Said['origin']
  readonly status?: Said['status']
  readonly restsOn?: readonly string[]
}

interface AskedColumn {
  readonly text?: string
  readonly origin?: Said['origin']
  readonly status?: Said['status']
  readonly restsOn?: readonly string[]
  readonly personal?: boolean | null
}

/** A part that is left out stays; null or an empty one takes it away, but for marks: they stay until said otherwise. */
export interface AskedDraft {
  readonly summary?: AskedText | null
  readonly examples?: AskedText | null
  readonly statements?: readonly AskedText[]
  readonly columns?: ReadonlyMap<string, AskedColumn>
}

/** Of a table that has gone from the database, what stands can still be edited and taken away. */
export function readDraftChange(
  asked: AskedDraft,
  before: Draft | null,
  place: RestingPlace,
): { readonly draft: Draft; readonly problems: readonly string[] } {
  const was = before ?? EMPTY
  const reader = new Reader(was, place)
  const draft: Draft = {
    summary: asked.summary === undefined ? was.summary : reader.text('summary', asked.summary),
    examples: asked.examples === undefined ? was.examples : reader.text('examples', asked.examples),
    statements: asked.statements === undefined ? was.statements : reader.statements(asked.statements),
    columns: asked.columns === undefined ? was.columns : reader.columns(asked.columns),
  }
  return { draft, problems: reader.problems }
}

class Reader {
  readonly problems: string[] = []
  readonly #place: RestingPlace
  /** What a text here rests on already, with the type it had, though the database may have it no more. */
  readonly #before: ReadonlyMap<string, string>
  readonly #generated: ReadonlyMap<string, Said>
  readonly #marked: Draft['columns']

  constructor(was: Draft, place: RestingPlace) {
    this.#place = place
    this.#marked = was.columns
    const texts = textsOf(was)
    this.#before = new Map([
      ...[...was.columns.keys()].map((name) => [name, ''] as const),
      ...texts.flatMap((said) => said.restsOn.map((name) => [name, said.types.get(name) ?? ''] as const)),
    ])
    this.#generated = new Map(texts.filter((said) => said.origin === 'GENERATED').map((said) => [said.text, said]))
  }

  text(place: string, asked: AskedText | null): Said | null {
    if (asked === null) return null
    // Whoever changes a generated text has written it; who does not has not, and it rests on what it rested on.
    const generated = this.#generated.get(asked.text)
    const restsOn = [...new Set([...(asked.restsOn ?? []), ...(generated?.restsOn ?? [])])]
    for (const name of restsOn) {
      if (!this.#knows(name)) this.problems.push(`${place}.restsOn: ${name} is no column that is known`)
    }
    // Of a column that has gone, the type it had.
    const gone = restsOn.flatMap((name) => [[name, this.#before.get(name) ?? ''] as const])
    return {
      text: asked.text,
      origin: generated === undefined ? 'HUMAN' : 'GENERATED',
      status: asked.status ?? 'ACCEPTED',
      restsOn,
      tells: generated?.tells === true,
      types: new Map([...gone, ...typesOf(restsOn, this.#place)]),
    }
  }

  statements(asked: readonly AskedText[]): Said[] {
    return asked.map((each, n) => this.text(`statements.${n}`, each)).filter((said) => said !== null)
  }

  columns(asked: ReadonlyMap<string, AskedColumn>): Draft['columns'] {
    const read = new Map<string, { said: Said | null; personal: boolean | null }>()
    for (const [name, { text, personal, ...rest }] of asked) {
      if (!this.#place.isOwn(name) && !this.#before.has(name)) {
        this.problems.push(`columns: ${name} is no column of this table`)
        continue
      }
      // A text about a column rests on it, whatever else it rests on.
      const restsOn = [name, ...(rest.restsOn ?? [])]
      const said = text === undefined ? null : this.text(`columns.${name}`, { ...rest, text, restsOn })
      if (said !== null || (personal ?? null) !== null) read.set(name, { said, personal: personal ?? null })
    }
    for (const [name, { personal }] of this.#marked) {
      if (personal !== null && !asked.has(name)) read.set(name, { said: null, personal })
    }
    return read
  }

  #knows(name: string): boolean {
    return this.#place.typeOf(name) !== undefined || this.#before.has(name)
  }
}
