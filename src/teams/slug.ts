// A slug is a team's unique short name in URLs. By default, it is made from the team's name.
import { randomInt } from 'node:crypto'
import type { Transaction } from 'kysely'
import type { Tables } from '../store/tables.ts'

const LETTERS_MAX = 40
const NUMBERED_MAX = 20

/** "Café Zürich!" becomes cafe-zurich. Returns "team" if nothing is left. */
export function slugFrom(name: string): string {
  const plain = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, LETTERS_MAX)
    .replace(/^-+|-+$/g, '')
  return plain === '' ? 'team' : plain
}

/** Adds a number if the slug of the name is taken, or a random number if many numbers are taken. */
export async function freeSlug(tx: Transaction<Tables>, name: string): Promise<string> {
  const base = slugFrom(name)
  for (let n = 1; ; n++) {
    const end = n <= NUMBERED_MAX ? String(n) : String(randomInt(1e9))
    const slug = n === 1 ? base : `${base}-${end}`
    const taken = await tx.selectFrom('teams').select('id').where('slug', '=', slug).executeTakeFirst()
    if (taken === undefined) return slug
  }
}
