// Runs the non-interference test of fuzz.ts on the real mongod. The test on the newest engine has a separate file, so
// that both tests run at the same time.
import { test } from 'node:test'
import { startMongod } from '../../support/mongodb.ts'
import { COUNT, fuzz, SEED } from './fuzz.ts'

test(`each answer to ${COUNT} random queries equals that of the stripped copy: the real mongod (seed ${SEED})`, (t) => fuzz(t, startMongod, { seed: SEED, cache: true }))
