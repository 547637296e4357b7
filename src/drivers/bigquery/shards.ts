// Which names are shards of a family: asked by the guard, the second wall and the catalog alike, so that they agree.
import type { ShardFamily } from './capture.ts'

export function isShard({ prefix, digits, apart }: ShardFamily, id: string): boolean {
  const isLike =
    id.startsWith(prefix) && id.length === prefix.length + digits && /^[0-9]+$/.test(id.slice(prefix.length))
  return isLike && !apart.includes(id)
}
