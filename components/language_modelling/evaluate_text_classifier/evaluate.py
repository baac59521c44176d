"""Score a text classifier on labelled texts, divided over the ranks. Each text is counted once."""

from sklearn.metrics import confusion_matrix

from allranks import runtime
from allranks_steps.finetuning import classified_texts, classifier, records
from allranks_steps.finetuning.classified_texts import Columns
from allranks_steps.finetuning.classifier import metrics, predict
from allranks_steps.json_files import confusion_document, write_json
from allranks_steps.text.model_folder import open_model


def evaluate(ranks: runtime.Ranks) -> None:
    args = runtime.arguments()
    part = records.read(args.data, "data")
    columns = Columns(args.text_column, args.text_pair_column, args.label_column)
    classified_texts.check(part, columns, "data")
    folder, _, tokenizer = open_model(args.model, "model", args.max_seq_length)
    model = classifier.load(folder, tokenizer.pad_token_id).to(ranks.device)
    is_regression = model.config.num_labels == 1
    names = None if is_regression else [model.config.id2label[number] for number in range(model.config.num_labels)]
    examples = classified_texts.tokenize(part, columns, tokenizer, args.max_seq_length, names, "data")
    table = predict(model, examples, args.per_device_eval_batch_size, tokenizer, ranks.device)
    if not ranks.is_main:
        return
    labels = examples["labels"]
    found = metrics(table, labels, regression=is_regression)
    write_json(args.metrics / "metrics.json", found)
    ranks.metrics.log(found, step=0)
    if names is not None:
        matrix = confusion_document(confusion_matrix(labels, table[:, 0], labels=range(len(names))), names)
        write_json(args.metrics / "confusion_matrix.json", matrix)
        ranks.metrics.log_dict(matrix, "confusion_matrix.json")
    print(", ".join(f"{name} {value:.4g}" for name, value in found.items()))


if __name__ == "__main__":
    runtime.main(evaluate)
