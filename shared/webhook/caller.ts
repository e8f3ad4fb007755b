/** How an API server shows who it is: with a client certificate, with a bearer token, or with both. */
export type CallerCredential = 'certificate' | 'bearer'

/** The `user` of a kubeconfig: names of files in a folder on the machine of the API server, and no secret. */
export function userOf({
  folder,
  credentials,
}: {
  folder: string
  credentials: readonly CallerCredential[]
}): object {
  return {
    ...(credentials.includes('certificate') && {
      'client-certificate': `${folder}/client.crt`,
      'client-key': `${folder}/client.key`,
    }),
    ...(credentials.includes('bearer') && { tokenFile: `${folder}/bearer-token` }),
  }
}
