"""Files that users write: configuration, policies, inputs of simulations, secrets; read strictly, with lines."""
