// Runs fuzz.ts on mongod. The tests on the newest engine are another file, so that both files run at the same time.
import { test } from 'node:test'
import { startMongod } from '../../support/mongodb.ts'
import { COUNT, fuzz, SEED } from './fuzz.ts'

test(`random queries are answered as on a database without hidden data: ${COUNT} queries on mongod (seed ${SEED})`, (t) => fuzz(t, startMongod, { seed: SEED, cache: true }))
