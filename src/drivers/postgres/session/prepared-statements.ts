// Holds the callers' queries that one session has prepared under names, so that the server need not parse them again
// (docs/decisions/0026-prepared-statements.md). Their texts are the printed texts of shapes that were seen twice.
import type { Preparable } from '../confined-query.ts'
import { closeStatement, type Field } from './protocol-messages.ts'

/** The maximum number of prepared queries of a session. Each takes about ten kilobytes of the server's memory. */
export const STATEMENTS_MAX = 100

export interface Statement {
  readonly name: string
  /**
   * The server's description of the rows. Null before the first answer. If the columns change, the server refuses the
   * statement.
   */
  fields: readonly Field[] | null
}

/** Queries that a server refused to prepare, although it ran their texts with the values in place of parameters. */
const refused = new WeakSet<Preparable>()

export class PreparedStatements {
  readonly #tag: string
  readonly #known = new Map<Preparable, Statement>()
  #exposure: object | null = null
  /** Frames that close dropped statements, for the next request that prepares. */
  #closes: Buffer[] = []
  #named = 0

  /** `tag` is a string that no other session's names contain. */
  constructor(tag: string) {
    this.#tag = tag
  }

  /** Returns whether this session may prepare the text. */
  static accepts(shared: Preparable): boolean {
    return !refused.has(shared)
  }

  /** Call it if a server refused to prepare this text but ran it unprepared. */
  static refuse(shared: Preparable): void {
    refused.add(shared)
  }

  find(shared: Preparable): Statement | undefined {
    return this.#known.get(shared)
  }

  /**
   * Returns a new statement to prepare. Drops the statements of another exposure, and the oldest statement if the
   * session is full.
   */
  next({ exposure }: Preparable): Statement {
    if (this.#exposure !== exposure) for (const old of this.#known.keys()) this.drop(old)
    this.#exposure = exposure
    const [oldest] = this.#known.keys()
    if (this.#known.size >= STATEMENTS_MAX && oldest !== undefined) this.drop(oldest)
    return { name: `q${this.#tag}${this.#named++}`, fields: null }
  }

  /** Returns the frames that close dropped statements, for the next request. */
  closes(): Buffer {
    return Buffer.concat(this.#closes.splice(0))
  }

  /** Call it when the server has prepared the statement. */
  keep(shared: Preparable, statement: Statement): void {
    this.#known.set(shared, statement)
  }

  drop(shared: Preparable): void {
    const statement = this.#known.get(shared)
    if (statement === undefined) return
    this.#known.delete(shared)
    this.#closes.push(closeStatement(statement.name))
  }

  /** Removes all statements, because the server no longer has them. */
  forget(): void {
    this.#known.clear()
    this.#closes = []
  }
}
