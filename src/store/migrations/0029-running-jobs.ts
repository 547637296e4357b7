// Adds an index for the search for running jobs. Without it, each search reads the whole table.
import type { Migration } from '../migration.ts'

export const runningJobs: Migration = {
  name: '0029-running-jobs',
  async up(tx) {
    await tx.schema.createIndex('jobs_by_state').on('jobs').column('state').execute()
  },
}
