/** Returns how often the event loop turns while `work` runs. In each turn, other requests can run. */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  const count = (): void => {
    turns++
    setImmediate(count).unref()
  }
  setImmediate(count).unref()
  await work()
  return turns
}
