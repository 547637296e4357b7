// Runs the non-interference test of fuzz.ts on the newest engine. The test on the real mongod has a separate file, so
// that both tests run at the same time.
import { test } from 'node:test'
import { startNewest } from '../../support/mongodb.ts'
import { COUNT, fuzz, SEED } from './fuzz.ts'

test(`each answer to ${COUNT} random queries equals that of the stripped copy: the newest engine (seed ${SEED})`, (t) => fuzz(t, startNewest, { cache: false }))
