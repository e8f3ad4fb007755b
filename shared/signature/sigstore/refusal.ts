/** Ends a verification from wherever it is: we know, no. It never leaves this folder. */
export class Refusal extends Error {}
