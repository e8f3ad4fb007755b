/** The deployment of a bundle, put in by `countersign build`. */
declare module 'countersign:deployment' {
  /** Text of `formatDeployment`. */
  export const text: string
}
