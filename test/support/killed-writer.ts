// Creates up to 5,000 teams until this process is killed. Prints each slug when its write is confirmed.
import { openStore } from '../../src/store/open.ts'
import { newId } from '../../src/ids.ts'
import type { StoreConfig } from './stores.ts'

const store = await openStore(JSON.parse(process.argv[2] ?? '') as StoreConfig)
for (let i = 0; i < 5_000; i++) {
  const slug = `team-${String(i).padStart(5, '0')}`
  const row = { id: newId<never>(), name: slug, slug, settings: '{}', created_at: '' }
  await store.write((tx) => tx.insertInto('teams').values(row).execute())
  process.stdout.write(`${slug}\n`)
}
