// Runs the non-interference test of fuzz.ts on the newest engine. The test on the real mongod has a separate file, so
// that both tests run at the same time, with different queries.
import { test } from 'node:test'
import { startNewest } from '../../support/mongodb.ts'
import { COUNT, fuzz, SEED } from './fuzz.ts'

test(`each answer to ${COUNT} random queries equals that of the stripped copy: the newest engine (seed ${SEED + 1})`, (t) => fuzz(t, startNewest, { seed: SEED + 1, cache: false }))
