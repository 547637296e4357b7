// Errors in the format of OAuth (RFC 6749 §5.2, RFC 7591 §3.2.2). People read `error_description`.

export class OauthError extends Error {
  override readonly name = 'OauthError'
  readonly error: string

  constructor(error: string, description: string) {
    super(description)
    this.error = error
  }

  get response(): Response {
    return Response.json({ error: this.error, error_description: this.message }, { status: 400 })
  }
}
