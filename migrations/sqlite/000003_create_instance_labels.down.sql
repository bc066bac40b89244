DROP TABLE instance_labels_history;
DROP TABLE instance_labels;
