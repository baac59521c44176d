echo "$1 of $2" > "$AZURE_ML_OUTPUT_results.$1"
