// Runs fuzz.ts on the newest MongoDB-compatible engine. The tests on mongod are another file, so that both files run at
// the same time.
import { test } from 'node:test'
import { startNewest } from '../../support/mongodb.ts'
import { COUNT, fuzz, SEED } from './fuzz.ts'

test(`random queries are answered as on a database without hidden data: ${COUNT} queries on the newest engine (seed ${SEED + 1})`, (t) => fuzz(t, startNewest, { seed: SEED + 1, cache: false }))
