// Describes which names of a collection's documents are exposed.

/** Exposed names by parent. Null if everything below is exposed. */
export interface Tree extends ReadonlyMap<string, Tree | null> {}
