"""What serves the webhooks: HTTPS, and the certificate that is shown."""
