/** The exposed names of a document, by their parent. Null if everything below a name is exposed. */
export interface Tree extends ReadonlyMap<string, Tree | null> {}
